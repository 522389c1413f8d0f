// Parses any bytes as a configuration, which gives entries that survive a round trip through their
// YAML, or a ConfigError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/config_tree.h"
#include "src/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<trireme::ConfigEntry> entries;
  try {
    entries = trireme::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const trireme::ConfigError&) {
    return 0;
  }
  for (const trireme::ConfigEntry& entry : entries) {
    const auto again = trireme::parse_config(entry.key + ": " + entry.value.to_yaml(), "again");
    if (again.size() != 1 || again[0].value.items != entry.value.items ||
        again[0].value.kind != entry.value.kind) {
      std::abort();
    }
  }
  return 0;
}
