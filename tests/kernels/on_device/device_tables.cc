// Makes tables from the CUDA table that take views of the host's memory.
#include "src/device/cuda_device.h"
#include "src/kernels/mirrored/mirrored_kernels.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {

std::vector<const Kernels*> tables_under_test() {
  return {&mirrored_kernels(Placement::aligned), &mirrored_kernels(Placement::as_on_host)};
}

std::vector<DType> activation_types() { return {DType::f32, DType::bf16, DType::f16}; }

bool runs_on_device(const Kernels& table) {
  return &table == &mirrored_kernels(Placement::aligned) ||
         &table == &mirrored_kernels(Placement::as_on_host);
}

Stream test_stream(int) {
  constexpr Device kDevice{DeviceKind::cuda, 0};
  // The queue is never destroyed: at exit, the device may be gone before static objects are.
  static const auto* const queue =
      new std::shared_ptr<StreamQueue>(cuda::make_queue(kDevice.index));
  return {kDevice, 1, *queue};
}

}  // namespace trireme::testing
