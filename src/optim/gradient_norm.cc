#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/compute/host_reads.h"

namespace trireme {

void SquareSums::add(const ParameterStore& store, std::int64_t first, const ConstView& gradients) {
  check(first % kSumBlock == 0, "shards are cut between blocks");
  const bool reads_gaps = context_.device().kind == DeviceKind::cuda;
  std::int64_t begin = 0;  // of the last piece
  std::int64_t next = -1;  // the block after that piece, or -1 before the first one
  for (const Parameter& parameter : store.all()) {
    const std::int64_t from = std::max<std::int64_t>(parameter.offset - first, 0);
    const std::int64_t end =
        std::min(parameter.offset + parameter.elements() - first, gradients.count);
    if (end <= from) {
      continue;
    }
    if (!parameter.trained || !parameter.place.primary) {
      next = -1;  // the gap behind the last piece may hold elements of this parameter
      continue;
    }
    if (reads_gaps && from == next) {
      pieces_.back() = piece_of(gradients, begin, end);
    } else {
      begin = from;
      pieces_.push_back(piece_of(gradients, begin, end));
    }
    next = (end + kSumBlock - 1) / kSumBlock * kSumBlock;
  }
}

// Returns the piece of the elements from `begin` to `end`.
SquareSums::Piece SquareSums::piece_of(const ConstView& gradients, std::int64_t begin,
                                       std::int64_t end) {
  const std::int64_t n = end - begin;
  const std::int64_t head = std::min((kSumBlock - begin % kSumBlock) % kSumBlock, n);
  return {gradients.slice(begin, n), head,
          (head > 0 ? 1 : 0) + (n - head + kSumBlock - 1) / kSumBlock};
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
