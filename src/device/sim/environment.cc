#include "src/device/sim/environment.h"

#include <charconv>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace sim {
namespace {

// Returns the variable's value, or `otherwise` if it is not set. Ends the process unless the value
// is a whole number from `least` to `most`.
std::uint64_t number_of(const char* variable, std::uint64_t otherwise, std::uint64_t least,
                        std::uint64_t most) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  std::uint64_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    std::fprintf(stderr,
                 "simulated device: %s=%s: expected a whole number from %" PRIu64 " to %" PRIu64
                 "\n",
                 variable, text, least, most);
    std::_Exit(2);
  }
  return number;
}

Environment read_environment() {
  constexpr std::uint64_t kMostDevices = 64;
  Environment read;
  read.seed = number_of("TRIREME_SIM_SEED", read.seed, 0, UINT64_MAX);
  read.memory_bytes = number_of("TRIREME_SIM_MEMORY", read.memory_bytes, std::uint64_t{1} << 20,
                                std::uint64_t{1} << 40);
  read.devices = static_cast<int>(
      number_of("TRIREME_SIM_DEVICES", static_cast<std::uint64_t>(read.devices), 0, kMostDevices));
  read.delays = number_of("TRIREME_SIM_DELAYS", 0, 0, 1) != 0;
  read.report_leaks = number_of("TRIREME_SIM_LEAKS", 0, 0, 1) != 0;
  if (const char* faults = std::getenv("TRIREME_SIM_FAULT"); faults != nullptr) {
    read.faults = faults;
  }
  if (const char* links = std::getenv("TRIREME_SIM_LINKS"); links != nullptr) {
    read.links = links;
  }
  return read;
}

}  // namespace

const Environment& environment() {
  static const Environment once = read_environment();
  return once;
}

namespace {

// A wrong variable ends the process before it has done anything.
[[maybe_unused]] const Environment& read_at_the_start = environment();

}  // namespace

}  // namespace sim
