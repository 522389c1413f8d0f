// The bench on which the self-check lays kernels: numbers to compute with, memory for results, and
// the comparison with the reference. One a check; single-threaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/compute/device_context.h"
#include "src/tensor/tensor.h"
#include "src/train/numerics/kernel_shapes.h"

namespace trireme {

class CheckBench {
 public:
  CheckBench(DeviceContext& context, const KernelShapes& shapes);

  const Kernels& kernels;
  const Kernels& reference;
  Stream& stream;
  const KernelShapes& shapes;
  DType dtype() const { return shapes.dtype; }

  // So many rows of a width that the kernel uses its threads, at most those of the run.
  std::int64_t rows_for(std::int64_t width) const;
  // Numbers within [-1, 1), others for other seeds.
  Tensor numbers(std::int64_t count, DType dtype, std::int64_t seed);
  // Every element is a NaN: what a kernel does not write shows.
  Tensor unwritten(std::int64_t count, DType dtype);
  Tensor copy(const Tensor& other);
  // i32, each within [0, limit).
  Tensor ids(std::int64_t count, std::int64_t limit);

  // Compares what `kernel` gave with the reference's results. terms: numbers that a result sums.
  // DeviceError where one is farther off than its type and the sum can explain.
  void compare(std::string_view kernel, const ConstView& found, const ConstView& expected,
               std::int64_t terms = 1);
  // DeviceError where an element is a NaN.
  void check_written(std::string_view kernel, const ConstView& found) const;

 private:
  Pool pool_;
  std::vector<float> material_;
};

// Elements as floats.
std::vector<float> floats_of(const ConstView& view);

// The parts of the check.
void check_products(CheckBench& bench);
void check_attention(CheckBench& bench);
void check_rows(CheckBench& bench);
void check_elements(CheckBench& bench);

}  // namespace trireme
