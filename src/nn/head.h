// Head: final norm, logits and their cross entropy with the targets. Only a chunk of logits
// [logits_rows, V] exists at a time; cross entropy turns it in place into its gradient, from which
// both products of backward are made at once. So forward and backward of the head are one call, and
// the gradient of W is made at once even where others are put off.
//
// In a tensor-parallel group each rank makes the logits of its own part of the vocabulary; ranks
// exchange four numbers a row (kernel_arguments.h, SoftmaxPart), never logits.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/norm.h"

namespace trireme {

struct Head {
  Norm norm;
  Linear output;          // W [V,C], transposed; V: ids of this rank
  bool tied = false;      // W is the token embedding, which announces the gradient itself
  IndexRange vocabulary;  // ids whose logits are made here
  std::int64_t whole_vocabulary = 0;  // ids of all ranks of the group
  std::int64_t rows_at_once = 1;      // see logits_rows

  // targets: i32 [B,T]. Writes the sum of the token losses, with the terms of run.loss_terms, to
  // run.loss, and returns the gradient of scale x loss with respect to the stream, [B,T,C].
  Tensor forward_backward(Residual stream, const ConstView& targets, float scale, Run& run) const;
  // Writes the plain cross entropy, which evaluation reports, to run.loss.
  void loss(Residual stream, const ConstView& targets, Run& run) const;
  // f32 [V] of the last token of a stream [1,T,C]. Not in a group.
  Tensor last_logits(Residual stream, Run& run) const;

 private:
  struct Chunks;
  void entropy(const Chunks& chunks, std::int64_t first, CrossEntropy call, Run& run) const;
};

}  // namespace trireme
