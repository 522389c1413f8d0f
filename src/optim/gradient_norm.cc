#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/compute/host_reads.h"

namespace trireme {

void SquareSums::add(const ParameterStore& store, std::int64_t first, const ConstView& gradients) {
  check(first % kSumBlock == 0, "shards are cut between blocks");
  for (const Parameter& parameter : store.all()) {
    const std::int64_t from = std::max<std::int64_t>(parameter.offset - first, 0);
    const std::int64_t end = parameter.offset + parameter.elements() - first;
    const std::int64_t n = std::min(end, gradients.count) - from;
    if (n > 0 && parameter.trained && parameter.place.primary) {
      const std::int64_t at = first + from;
      const std::int64_t head = std::min((kSumBlock - at % kSumBlock) % kSumBlock, n);
      pieces_.push_back({gradients.slice(from, n), head,
                         (head > 0 ? 1 : 0) + (n - head + kSumBlock - 1) / kSumBlock});
    }
  }
}

ConstView SquareSums::start() {
  std::int64_t blocks = 0;
  for (const Piece& piece : pieces_) {
    blocks += piece.blocks;
  }
  sums_ = Tensor(context_.activations(), Shape{blocks}, DType::f64);
  const Kernels& kernels = context_.kernels();
  std::int64_t at = 0;
  for (const Piece& piece : pieces_) {
    const View sums = sums_.view().slice(at, piece.blocks);
    const std::int64_t heads = piece.head > 0 ? 1 : 0;
    kernels.sums_of_squares(context_.stream(), sums.slice(0, heads), piece.x.slice(0, piece.head));
    kernels.sums_of_squares(context_.stream(), sums.slice(heads, piece.blocks - heads),
                            piece.x.slice(piece.head, piece.x.count - piece.head));
    at += piece.blocks;
  }
  pieces_.clear();
  return sums_.view();
}

ExactSum SquareSums::total(std::span<const double> sums) {
  ExactSum total;
  for (const double sum : sums) {
    total.add(sum);
  }
  return total;
}

ExactSum SquareSums::read() {
  HostReads reads(context_);
  const std::size_t sums = reads.add(start());
  reads.wait();
  return total(reads.at<double>(sums));
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
