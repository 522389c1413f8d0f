// Kernels is the kernel table: function pointers for every operation that a layer or an optimizer
// runs on a device. Each implementation has one table: reference (plain loops, in double where it
// matters), cpu (oneDNN and fused kernels, per instruction set), cuda, and none, which does
// nothing. src/compute/kernel_choice.h chooses the table.
//
// Rules for every entry:
// - Work is ordered on the stream; on the CPU it has finished when the call returns.
// - Views are dense and row-major unless a stride says otherwise; strides count elements.
// - Activations ("T" below) are f32, bf16 or f16, with one type per call; sums are taken in f32 or
//   better. The tables of CPUs have no f16. Weights have the activations' type. Gradients of
//   parameters are always f32 and are overwritten unless `accumulate` says otherwise.
// - An id outside its vocabulary is a defect of the caller. Tables of the host throw InternalError;
//   the CUDA table, which cannot, makes what depends on the id NaN.
// - Results depend on the arguments and the instruction set, not on the number of threads.
//
// Shape letters: B batch, T time, C channels, H heads, D head dimension, V vocabulary,
// R = B*T rows.
#pragma once

#include <string>
#include <string_view>

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme {

struct Kernels {
  std::string_view name;

  // C = op(A) op(B) (+ bias) (+ C), then the epilogue.
  void (*matmul)(Stream&, const Matmul&);
  // Sets sum[N] (f32) to the sum over the rows of x[M, N], the gradient of a bias.
  void (*column_sum)(Stream&, const ColumnSum&);

  void (*embedding_forward)(Stream&, const EmbeddingForward&);
  void (*embedding_backward)(Stream&, const EmbeddingBackward&);
  void (*layer_norm_forward)(Stream&, const NormForward&);
  void (*layer_norm_backward)(Stream&, const NormBackward&);
  void (*rms_norm_forward)(Stream&, const NormForward&);
  void (*rms_norm_backward)(Stream&, const NormBackward&);
  void (*rope)(Stream&, const Rope&);
  void (*attention_forward)(Stream&, const AttentionForward&);
  void (*attention_backward)(Stream&, const AttentionBackward&);
  // GELU in its tanh form (Hendrycks and Gimpel, 2016): y = gelu(x); dx = dy gelu'(x).
  void (*gelu_forward)(Stream&, View y, ConstView x);
  void (*gelu_backward)(Stream&, View dx, ConstView dy, ConstView x);
  // SwiGLU (Shazeer, 2020): y = silu(gate) * up.
  void (*swiglu_forward)(Stream&, View y, ConstView gate, ConstView up);
  void (*swiglu_backward)(Stream&, View dgate, View dup, ConstView dy, ConstView gate,
                          ConstView up);
  void (*dropout)(Stream&, const Dropout&);
  void (*cross_entropy)(Stream&, const CrossEntropy&);
  void (*softmax_part)(Stream&, const SoftmaxPart&);
  void (*cross_entropy_of_parts)(Stream&, const CrossEntropyOfParts&);
  void (*distillation)(Stream&, const Distillation&);

  void (*adamw)(Stream&, const AdamW&);
  void (*sgd)(Stream&, const Sgd&);
  void (*moving_average)(Stream&, const MovingAverage&);
  void (*combine)(Stream&, const Combine&);
  // Multiplies x (f32) by 1 / (sqrt(sum of sums) + epsilon); sums: f64, as from sums_of_squares.
  void (*normalize)(Stream&, View x, ConstView sums, float epsilon);

  // Sets sums[b] (f64 [ceil(n / kSumBlock)]) to the sum of x[i]^2 over block b of an f32 view,
  // added in double and in a fixed order.
  void (*sums_of_squares)(Stream&, View sums, ConstView x);
  // Sets total (f64 [1]) to the sum of x (f32), added in double from the first to the last.
  void (*sum)(Stream&, View total, ConstView x);
  // Sets digest (i64 [1]) to a digest of the bytes of x, of any type. Digests can be compared if
  // one table computed them.
  void (*digest)(Stream&, View digest, ConstView x);
  // y += x, of one type.
  void (*add)(Stream&, View y, ConstView x);
  // y += x[0] + (x[1] + (... + x[n-1])), all f32, for n from 1 to kMaxAddends. Has the bits of
  // add() calls from the right, in one pass over memory.
  void (*add_chain)(Stream&, View y, const ConstView* x, int n);
  // x[i] = 0 where y[i] is 0, both f32.
  void (*zero_where_zero)(Stream&, View x, ConstView y);
  // y = x, converting between f32 and a type of 2 bytes (nearest, ties to even).
  void (*cast)(Stream&, View y, ConstView x);
  void (*fill)(Stream&, View y, float value);
  // x *= factor.
  void (*scale)(Stream&, View x, float factor);
};

inline constexpr std::int64_t kSumBlock = 4096;
inline constexpr int kMaxAddends = 8;

}  // namespace trireme
