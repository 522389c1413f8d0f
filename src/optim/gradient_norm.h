// Computes the global gradient norm and the factor that clips it. Squares are summed in double over
// fixed blocks of kSumBlock elements of each parameter, and the blocks' sums are added exactly
// (ExactSum). The bits therefore do not depend on how parameters are divided among ranks, stages
// and stores. The device computes the blocks' sums; the host reads them all at once.
#pragma once

#include <span>

#include "src/base/exact_sum.h"
#include "src/nn/parameter.h"
#include "src/tensor/tensor.h"

namespace trireme {

// Collects the squares of gradients on the device. One thread; used once per step.
class SquareSums {
 public:
  explicit SquareSums(DeviceContext& context) : context_(context) {}

  // Adds gradients, f32, which are the store's flat elements from `first` on, a multiple of
  // kSumBlock, and stay unchanged until their squares have been summed. Skips parameters that are
  // not trained, and copies whose primary another rank holds. On a GPU, which has a cost per call,
  // parameters that follow each other without a skipped one between them are one piece, and the
  // gaps between them must be 0; the bits are the same.
  void add(const ParameterStore& store, std::int64_t first, const ConstView& gradients);
  // Queues the sums and returns them, f64, one number per block. They live as long as this.
  ConstView start();
  // Returns the sum of all squares from a copy of what start() returned.
  static ExactSum total(std::span<const double> sums);
  // Does both: waits for the device.
  ExactSum read();

 private:
  // Blocks are aligned to multiples of kSumBlock in the flat numbering, where parameters start. The
  // first block of a piece may be shorter.
  struct Piece {
    ConstView x;
    std::int64_t head = 0;    // elements up to the next multiple of kSumBlock
    std::int64_t blocks = 0;  // including the first, short one
  };

  static Piece piece_of(const ConstView& gradients, std::int64_t begin, std::int64_t end);

  DeviceContext& context_;
  std::vector<Piece> pieces_;
  Tensor sums_;
};

// Returns sqrt(sum of squares) of gradients, f32 [flat_elements], laid out like the store.
double gradient_norm(const ParameterStore& store, const ConstView& gradients);

// Returns the factor that limits the gradients' norm to max_norm, min(1, max_norm / (norm + 1e-6))
// as in PyTorch, or 1 if max_norm is 0, which means no clipping.
double clip_factor(double norm, double max_norm);

}  // namespace trireme
