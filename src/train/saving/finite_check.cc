#include "src/train/saving/finite_check.h"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "src/tensor/tensor.h"

namespace trireme {
namespace {

std::int64_t sums_of(const ConstView& x) { return (x.count + kSumBlock - 1) / kSumBlock; }

bool is_checked(const TensorBlock& block, FiniteCheck check) {
  return block.data.dtype == DType::f32 &&
         (check != FiniteCheck::weights || !block.name.starts_with("optimizer."));
}

// Waits once and returns the sums of squares of all blocks that are checked, one after another. A
// sum is finite if all elements are, and NaN if one of them is NaN: the squares of floats and their
// sums are far below the largest double.
std::vector<double> sums_of_squares(DeviceContext& context, const std::vector<TensorBlock>& blocks,
                                    FiniteCheck check) {
  std::int64_t count = 0;
  for (const TensorBlock& block : blocks) {
    count += is_checked(block, check) ? sums_of(block.data) : 0;
  }
  const Tensor sums(context.activations(), Shape{count}, DType::f64);
  std::int64_t at = 0;
  for (const TensorBlock& block : blocks) {
    if (is_checked(block, check)) {
      const std::int64_t n = sums_of(block.data);
      context.kernels().sums_of_squares(context.stream(), sums.view().slice(at, n), block.data);
      at += n;
    }
  }
  return context.read<double>(sums.view());
}

}  // namespace

std::string fault_of_numbers(DeviceContext& context, const std::vector<TensorBlock>& blocks,
                             FiniteCheck check) {
  const std::vector<double> sums = sums_of_squares(context, blocks, check);
  auto next = sums.begin();
  for (const TensorBlock& block : blocks) {
    if (!is_checked(block, check)) {
      continue;
    }
    const bool is_bounded = check == FiniteCheck::finite || !block.name.starts_with("optimizer.");
    const auto end = next + sums_of(block.data);
    const double sum = std::accumulate(next, end, 0.0);
    next = end;
    if (std::isnan(sum) || (is_bounded && std::isinf(sum))) {
      return fmt::format("{} contains {}", block.name, std::isnan(sum) ? "NaN" : "infinity");
    }
  }
  return "";
}

std::string fault_of_moments(const std::vector<TensorBlock>& blocks) {
  for (const TensorBlock& block : blocks) {
    if (!block.name.starts_with("optimizer.v.")) {
      continue;
    }
    const float* const moments = as<float>(block.data);
    bool is_negative = false;
    for (std::int64_t i = 0; i < block.data.count; ++i) {
      is_negative |= moments[i] < 0;
    }
    if (is_negative) {
      return fmt::format("{} contains a negative second moment", block.name);
    }
  }
  return "";
}

}  // namespace trireme
