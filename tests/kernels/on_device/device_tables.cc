// The CUDA table on the simulated device, as tables that take views of the host's memory.
#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/sim/machine.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {

std::vector<const Kernels*> tables_under_test() {
  return {&mirrored_kernels(Placement::aligned), &mirrored_kernels(Placement::as_on_host)};
}

bool runs_on_device(const Kernels& table) {
  return &table == &mirrored_kernels(Placement::aligned) ||
         &table == &mirrored_kernels(Placement::as_on_host);
}

Stream test_stream(int) {
  constexpr Device kDevice{DeviceKind::cuda, 0};
  // Never destroyed: at exit, the device may be gone before static objects are.
  static const auto* const queue =
      new std::shared_ptr<StreamQueue>(cuda::make_queue(kDevice.index));
  return {kDevice, 1, *queue};
}

void each_schedule(const std::function<void(const std::string&, Stream&)>& run) {
  const std::uint64_t before = sim::machine().seed();
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    sim::machine().set_seed(seed);
    Stream stream = test_stream(1);
    run(fmt::format("seed {}", seed), stream);
  }
  sim::machine().set_seed(before);
}

}  // namespace trireme::testing
