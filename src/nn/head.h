// Head computes the final norm, the logits, and their cross entropy with the targets. Only one
// chunk of logits [logits_rows, V] exists at a time: cross entropy replaces it by its gradient,
// from which both products of backward are computed before the next chunk. Therefore forward and
// backward of the head are one call, and the gradient of W is computed in it even if others are put
// off.
//
// With a teacher, the chunk of its logits exists beside the student's, and is replaced by the
// gradient of the divergence.
//
// In a tensor-parallel group, each rank computes the logits of its own part of the vocabulary; the
// ranks exchange four numbers per row (SoftmaxPart in kernel_arguments.h), never logits. Has no
// state.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/norm.h"

namespace trireme {

struct Head {
  Norm norm;
  float logit_scale = 1;  // applied to what W multiplies
  Linear output;          // W [V,C], transposed; V: number of ids of this rank
  bool tied = false;      // W is the token embedding, whose backward announces the gradient
  IndexRange vocabulary;  // ids whose logits this rank computes
  std::int64_t whole_vocabulary = 0;  // number of ids of all ranks of the group
  std::int64_t rows_at_once = 1;      // on a CPU, see logits_rows; more on a GPU

  // Lesson is what the head learns from a teacher about a micro-batch.
  struct Lesson {
    const Head& head;  // of the teacher
    Tensor rows;       // T [B,T,C of the teacher]: what its output matrix multiplies
    Run& run;          // with the teacher's parameters
    float weight;      // as in Teaching
    float temperature;
  };

  // Returns the norm's result, with y times the scale: what W multiplies.
  Norm::Result normalized(Residual& stream, Run& run) const;
  // targets: i32 [B,T]. Writes the sum of the token losses, with the terms of run.loss_terms, to
  // run.loss, and that of each sample to run.sample_losses. Returns the gradient of scale x loss
  // with respect to the stream: [B,T,C], or this rank's rows of it. lesson: null without a teacher;
  // otherwise both parts of the loss go to run.taught. Not allowed in a group.
  Tensor forward_backward(Residual stream, const ConstView& targets, float scale, Run& run,
                          const Lesson* lesson = nullptr) const;
  // Writes the sum of the plain cross entropies, as evaluation reports it, to run.loss.
  void loss(Residual stream, const ConstView& targets, Run& run) const;
  // Returns f32 [rows,V], the logits of the last `rows` tokens of a stream [1,T,C]. Not allowed in
  // a group.
  Tensor last_logits(Residual stream, std::int64_t rows, Run& run) const;

 private:
  struct Chunks;
  void project(const Chunks& chunks, const ConstView& x, const View& logits, Run& run) const;
  void project_back(const Chunks& chunks, const ConstView& logits, const View& dx, Run& run) const;
  void weight_gradient(const Chunks& chunks, std::int64_t first, const ConstView& x,
                       Run& run) const;
  void entropy(const Chunks& chunks, std::int64_t first, CrossEntropy call, Run& run) const;
  void learn(const Chunks& chunks, const Chunks& taught, std::int64_t first,
             const CrossEntropy& call, const Lesson& lesson, Run& run) const;
  void write_losses(const Chunks& chunks, const Chunks* taught, const Lesson* lesson,
                    Run& run) const;
};

}  // namespace trireme
