// Parses any bytes as a fault plan, which gives rules that survive a round trip, or a ConfigError.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/base/fault_plan.h"

namespace {

using trireme::FaultSite;

// A point of each kind, and those that the corpus names.
constexpr std::array kSites = {
    FaultSite{"ckpt.rename", FaultSite::Kind::point, ""},
    FaultSite{"step.end", FaultSite::Kind::point, ""},
    FaultSite{"load.shard", FaultSite::Kind::data, ""},
    FaultSite{"step.gradient", FaultSite::Kind::numbers, ""},
    FaultSite{"file.sync", FaultSite::Kind::call, ""},
    FaultSite{"file.write", FaultSite::Kind::call, ""},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  if (text.starts_with('@')) {
    return 0;  // the name of a file
  }
  try {
    for (const trireme::FaultRule& rule : trireme::parse_fault_plan(text, kSites)) {
      if (trireme::parse_fault_plan(trireme::to_text(rule), kSites).at(0) != rule) {
        std::abort();
      }
    }
  } catch (const trireme::ConfigError&) {
    return 0;
  }
  return 0;
}
