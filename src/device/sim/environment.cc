#include "src/device/sim/environment.h"

#include <cstdio>
#include <cstdlib>

namespace sim {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') {
    return otherwise;
  }
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (*end != '\0') {
    std::fprintf(stderr, "simulated device: %s=%s is not a number\n", variable, text);
    std::exit(2);
  }
  return number;
}

Environment read_environment() {
  Environment read;
  read.seed = number_of("TRIREME_SIM_SEED", read.seed);
  read.memory_bytes = number_of("TRIREME_SIM_MEMORY", read.memory_bytes);
  read.devices =
      static_cast<int>(number_of("TRIREME_SIM_DEVICES", static_cast<std::uint64_t>(read.devices)));
  read.delays = number_of("TRIREME_SIM_DELAYS", 0) != 0;
  read.report_leaks = number_of("TRIREME_SIM_LEAKS", 0) != 0;
  if (const char* faults = std::getenv("TRIREME_SIM_FAULT"); faults != nullptr) {
    read.faults = faults;
  }
  return read;
}

}  // namespace

const Environment& environment() {
  static const Environment once = read_environment();
  return once;
}

}  // namespace sim
