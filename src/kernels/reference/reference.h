// Declares the reference table: plain, slow loops in double, with one thread and one rounding per
// store. The other tables are tested against it. Stateless; callable from any thread.
#pragma once

#include <cmath>

#include "src/kernels/kernels.h"

namespace trireme::reference {

extern const Kernels kTable;

// Returns element i of an f32, bf16 or f16 view.
inline double at(const ConstView& view, std::int64_t i) {
  if (view.dtype == DType::bf16) {
    return static_cast<double>(to_float(static_cast<const bf16*>(view.data)[i]));
  }
  if (view.dtype == DType::f16) {
    return static_cast<double>(to_float(static_cast<const f16*>(view.data)[i]));
  }
  return static_cast<double>(as<float>(view)[i]);
}
inline void put(const View& view, std::int64_t i, double value) {
  if (view.dtype == DType::bf16) {
    static_cast<bf16*>(view.data)[i] = to_bf16(static_cast<float>(value));
  } else if (view.dtype == DType::f16) {
    static_cast<f16*>(view.data)[i] = to_f16(static_cast<float>(value));
  } else {
    as<float>(view)[i] = static_cast<float>(value);
  }
}

// These return sqrt(2/pi) (x + 0.044715 x^3), GELU in its tanh form, and GELU's derivative.
inline double gelu_argument(double x) { return 0.7978845608028654 * (x + 0.044715 * x * x * x); }
inline double gelu(double x) { return 0.5 * x * (1 + std::tanh(gelu_argument(x))); }
inline double gelu_slope(double x) {
  const double t = std::tanh(gelu_argument(x));
  const double slope = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

void matmul(Stream&, const Matmul&);
void column_sum(Stream&, const ColumnSum&);
void embedding_forward(Stream&, const EmbeddingForward&);
void embedding_backward(Stream&, const EmbeddingBackward&);
void layer_norm_forward(Stream&, const NormForward&);
void layer_norm_backward(Stream&, const NormBackward&);
void rms_norm_forward(Stream&, const NormForward&);
void rms_norm_backward(Stream&, const NormBackward&);
void rope(Stream&, const Rope&);
void attention_forward(Stream&, const AttentionForward&);
void attention_backward(Stream&, const AttentionBackward&);
void gelu_forward(Stream&, View y, ConstView x);
void gelu_backward(Stream&, View dx, ConstView dy, ConstView x);
void swiglu_forward(Stream&, View y, ConstView gate, ConstView up);
void swiglu_backward(Stream&, View dgate, View dup, ConstView dy, ConstView gate, ConstView up);
void dropout(Stream&, const Dropout&);
void cross_entropy(Stream&, const CrossEntropy&);
void softmax_part(Stream&, const SoftmaxPart&);
void cross_entropy_of_parts(Stream&, const CrossEntropyOfParts&);
void distillation(Stream&, const Distillation&);
void adamw(Stream&, const AdamW&);
void sgd(Stream&, const Sgd&);
void moving_average(Stream&, const MovingAverage&);
void combine(Stream&, const Combine&);
void normalize(Stream&, View x, ConstView sums, float epsilon);
void sums_of_squares(Stream&, View sums, ConstView x);
void sum(Stream&, View total, ConstView x);
void add(Stream&, View y, ConstView x);
void add_chain(Stream&, View y, const ConstView* x, int n);
void zero_where_zero(Stream&, View x, ConstView y);
void cast(Stream&, View y, ConstView x);
void fill(Stream&, View y, float value);
void scale(Stream&, View x, float factor);

}  // namespace trireme::reference
