// Parses any bytes as a fault plan, which gives rules that survive a round trip, or a ConfigError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/base/fault_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  if (text.starts_with('@')) {
    return 0;  // the name of a file
  }
  try {
    for (const trireme::FaultRule& rule : trireme::parse_fault_plan(text)) {
      if (trireme::parse_fault_plan(trireme::to_text(rule)).at(0) != rule) {
        std::abort();
      }
    }
  } catch (const trireme::ConfigError&) {
    return 0;
  }
  return 0;
}
