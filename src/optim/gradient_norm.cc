#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trireme {
namespace {

// Blocks are aligned to multiples of kSumBlock in the flat numbering, where parameters start.
void add_blocks(std::int64_t at, ConstView x, const Kernels& kernels, Stream& stream,
                ExactSum& sum) {
  std::vector<double> sums(static_cast<std::size_t>(x.count / kSumBlock + 2));
  const std::int64_t head = std::min((kSumBlock - at % kSumBlock) % kSumBlock, x.count);
  kernels.sums_of_squares(stream, sums.data(), x.slice(0, head));
  const std::size_t heads = head > 0 ? 1 : 0;
  kernels.sums_of_squares(stream, sums.data() + heads, x.slice(head, x.count - head));
  const auto blocks =
      heads + static_cast<std::size_t>((x.count - head + kSumBlock - 1) / kSumBlock);
  for (std::size_t b = 0; b < blocks; ++b) {
    sum.add(sums[b]);
  }
}

}  // namespace

void add_squares(const ParameterStore& store, std::int64_t first, const ConstView& gradients,
                 const Kernels& kernels, Stream& stream, ExactSum& sum) {
  check(first % kSumBlock == 0, "shards are cut between blocks");
  for (const Parameter& parameter : store.all()) {
    const std::int64_t from = std::max<std::int64_t>(parameter.offset - first, 0);
    const std::int64_t end = parameter.offset + parameter.elements() - first;
    const std::int64_t n = std::min(end, gradients.count) - from;
    if (n > 0 && parameter.trained && parameter.place.primary) {
      add_blocks(first + from, gradients.slice(from, n), kernels, stream, sum);
    }
  }
}

double gradient_norm(const ParameterStore& store, const ConstView& gradients,
                     const Kernels& kernels, Stream& stream) {
  ExactSum sum;
  add_squares(store, 0, gradients, kernels, stream, sum);
  return std::sqrt(sum.value());
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace trireme
