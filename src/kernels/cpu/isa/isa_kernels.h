// Declares the kernels whose sources are compiled once per instruction set (baseline, avx2,
// avx512). The macro TRIREME_ISA is the name of the set and of the namespace. Code under cpu/isa
// must not call inline functions of other namespaces that the compiler does not inline: the linker
// would keep one copy, perhaps one for a richer instruction set, which fails on a plain processor.
// tests/kernels/isa_symbols.sh checks this. The table's entries (table.cc) check types through
// as<T>(), which is always inlined.
#pragma once

#include "src/kernels/kernels.h"

namespace trireme::cpu::TRIREME_ISA {

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
void sums_of_squares(Stream&, View sums, ConstView x);
void sum(Stream&, View total, ConstView x);
void add(Stream&, View y, ConstView x);
void add_chain(Stream&, View y, const ConstView* x, int n);
void cast(Stream&, View y, ConstView x);
void fill(Stream&, View y, float value);
void scale(Stream&, View x, float factor);

}  // namespace trireme::cpu::TRIREME_ISA
