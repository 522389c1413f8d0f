// Lists orders in which the simulated device runs concurrent work.
#include <cstdlib>

#include <fmt/core.h>

#include "src/device/sim/machine.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {

void each_schedule(const std::function<void(const std::string&, Stream&)>& run) {
  const std::uint64_t before = sim::machine().seed();
  const char* const wanted = std::getenv("TRIREME_TEST_SCHEDULES");
  const std::uint64_t seeds = wanted == nullptr ? 4 : std::strtoull(wanted, nullptr, 10);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    sim::machine().set_seed(seed);
    Stream stream = test_stream(1);
    run(fmt::format("seed {}", seed), stream);
  }
  sim::machine().set_seed(before);
}

}  // namespace trireme::testing
