// The CUDA table on the simulated device, as tables that take views of the host's memory.
#include "src/base/error.h"
#include "src/device/sim/machine.h"
#include "tests/kernels/on_device/on_device.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {

std::vector<const Kernels*> tables_under_test() {
  return {&on_device(Placement::aligned), &on_device(Placement::as_on_host)};
}

bool runs_on_device(const Kernels& table) {
  return &table == &on_device(Placement::aligned) || &table == &on_device(Placement::as_on_host);
}

void each_schedule(const std::function<void(const std::string&, Stream&)>& run) {
  const std::uint64_t before = sim::machine().seed();
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    sim::machine().set_seed(seed);
    Stream stream(Device{}, 1);
    run(fmt::format("seed {}", seed), stream);
  }
  sim::machine().set_seed(before);
}

}  // namespace trireme::testing
