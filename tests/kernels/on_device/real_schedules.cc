// A real device has one schedule, which nobody chooses; several runs may differ.
#include <fmt/core.h>

#include "tests/kernels/tables.h"

namespace trireme::testing {

void each_schedule(const std::function<void(const std::string&, Stream&)>& run) {
  for (int i = 0; i < 4; ++i) {
    Stream stream = test_stream(1);
    run(fmt::format("run {}", i), stream);
  }
}

}  // namespace trireme::testing
