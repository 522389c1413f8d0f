#include "src/train/saving/finite_check.h"

#include <cmath>

#include <fmt/format.h>

#include "src/tensor/tensor.h"

namespace trireme {
namespace {

// Returns a number that is finite if all elements are, and NaN if one of them is NaN. The squares
// of floats and their sums are far below the largest double.
double sum_of_squares(DeviceContext& context, const ConstView& x) {
  const std::int64_t blocks = (x.count + kSumBlock - 1) / kSumBlock;
  const Tensor sums(context.activations(), Shape{blocks}, DType::f64);
  context.kernels().sums_of_squares(context.stream(), sums.view(), x);
  double total = 0;
  for (const double sum : context.read<double>(sums.view())) {
    total += sum;
  }
  return total;
}

}  // namespace

std::string fault_of_numbers(DeviceContext& context, const std::vector<TensorBlock>& blocks,
                             FiniteCheck check) {
  for (const TensorBlock& block : blocks) {
    const bool is_weight = !block.name.starts_with("optimizer.");
    if (block.data.dtype != DType::f32 || (check == FiniteCheck::weights && !is_weight)) {
      continue;
    }
    const double sum = sum_of_squares(context, block.data);
    if (std::isnan(sum) || (is_weight && std::isinf(sum))) {
      return fmt::format("{} contains {}", block.name, std::isnan(sum) ? "NaN" : "infinity");
    }
  }
  return "";
}

}  // namespace trireme
