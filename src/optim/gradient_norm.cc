#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme {

// Blocks are aligned to multiples of kSumBlock in the flat numbering, where parameters start.
void SquareSums::add_blocks(std::int64_t at, const ConstView& x) {
  const std::int64_t head = std::min((kSumBlock - at % kSumBlock) % kSumBlock, x.count);
  const std::int64_t heads = head > 0 ? 1 : 0;
  const std::int64_t rest = (x.count - head + kSumBlock - 1) / kSumBlock;
  sums_.emplace_back(context_.activations(), Shape{heads + rest}, DType::f64);
  const View sums = sums_.back().view();
  const Kernels& kernels = context_.kernels();
  kernels.sums_of_squares(context_.stream(), sums.slice(0, heads), x.slice(0, head));
  kernels.sums_of_squares(context_.stream(), sums.slice(heads, rest),
                          x.slice(head, x.count - head));
}

void SquareSums::add(const ParameterStore& store, std::int64_t first, const ConstView& gradients) {
  check(first % kSumBlock == 0, "shards are cut between blocks");
  for (const Parameter& parameter : store.all()) {
    const std::int64_t from = std::max<std::int64_t>(parameter.offset - first, 0);
    const std::int64_t end = parameter.offset + parameter.elements() - first;
    const std::int64_t n = std::min(end, gradients.count) - from;
    if (n > 0 && parameter.trained && parameter.place.primary) {
      add_blocks(first + from, gradients.slice(from, n));
    }
  }
}

ExactSum SquareSums::read() {
  if (context_.device().kind == DeviceKind::counting) {  // there is nothing to read
    sums_.clear();
    return {};
  }
  std::int64_t blocks = 0;
  for (const Tensor& sums : sums_) {
    blocks += sums.elements();
  }
  std::vector<double> all(static_cast<std::size_t>(blocks));
  const View host{all.data(), blocks, DType::f64};
  std::int64_t at = 0;
  for (const Tensor& sums : sums_) {
    context_.stream().copy(host.slice(at, sums.elements()), sums.view());
    at += sums.elements();
  }
  context_.stream().synchronize();
  sums_.clear();
  ExactSum total;
  for (const double sum : all) {
    total.add(sum);
  }
  return total;
}

double gradient_norm(const ParameterStore& store, const ConstView& gradients) {
  SquareSums squares(store.context());
  squares.add(store, 0, gradients);
  return std::sqrt(squares.read().value());
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace trireme
