// CheckBench is what the self-check of kernels works with: numbers as arguments, memory for
// results, and the comparison with the reference. All of them are in the host's memory, from which
// the mirrored kernels copy them if a device computes. One per check; one thread.
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

  const Kernels& kernels;  // for views of the host's memory
  const Kernels& reference;
  Stream& stream;
  const KernelShapes& shapes;
  DType dtype() const { return shapes.dtype; }

  // Returns a number of rows of this width with which a kernel uses its threads, at most the run's
  // rows.
  std::int64_t rows_for(std::int64_t width) const;
  // Returns [count] numbers within [-1, 1), different ones for different seeds.
  Tensor numbers(std::int64_t count, DType dtype, std::int64_t seed);
  // Returns [count] NaNs, so that elements that a kernel does not write are found.
  Tensor unwritten(std::int64_t count, DType dtype);
  Tensor copy(const Tensor& other);
  // Returns i32 [count], each within [0, limit).
  Tensor ids(std::int64_t count, std::int64_t limit);

  // Compares what `kernel` computed with the reference's results. terms: how many numbers each
  // result sums. Throws DeviceError if a result is farther off than its type and the sum can
  // explain.
  void compare(std::string_view kernel, const ConstView& found, const ConstView& expected,
               std::int64_t terms = 1);
  // Throws DeviceError if an element is NaN.
  void check_written(std::string_view kernel, const ConstView& found) const;

 private:
  // Returns, for example, "the cuda kernels" and "on node3 with 4 threads".
  std::string table() const;
  std::string place() const;

  DeviceContext& context_;
  Pool pool_;
  std::vector<float> material_;
};

// Returns the elements as floats.
std::vector<float> floats_of(const ConstView& view);

// These are the parts of the check. Each throws DeviceError for a wrong result.
void check_products(CheckBench& bench);
void check_attention(CheckBench& bench);
void check_rows(CheckBench& bench);
void check_elements(CheckBench& bench);

}  // namespace trireme
