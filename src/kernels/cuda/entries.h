// Declares the entries of the CUDA table (src/kernels/kernels.h). They enqueue work on the stream,
// which must be one of a CUDA device, and return at once. Memory that a kernel needs for itself
// comes from scratch.h. An id outside the vocabulary turns its results to NaN (embedding.cu).
#pragma once

#include "src/kernels/kernels.h"

namespace trireme::cuda {

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
void digest(Stream&, View digest, ConstView x);
void add(Stream&, View y, ConstView x);
void add_chain(Stream&, View y, const ConstView* x, int n);
void zero_where_zero(Stream&, View x, ConstView y);
void cast(Stream&, View y, ConstView x);
void fill(Stream&, View y, float value);
void scale(Stream&, View x, float factor);

}  // namespace trireme::cuda
