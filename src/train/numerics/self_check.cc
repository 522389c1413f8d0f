#include "src/train/numerics/self_check.h"

#include "src/compute/kernel_choice.h"
#include "src/train/numerics/bench.h"

namespace trireme {

void check_kernels(DeviceContext& context, const KernelShapes& shapes) {
  if (&context.kernels() == &kernels_named("reference")) {
    return;
  }
  CheckBench bench(context, shapes);
  check_products(bench);
  check_attention(bench);
  check_rows(bench);
  check_elements(bench);
}

}  // namespace trireme
