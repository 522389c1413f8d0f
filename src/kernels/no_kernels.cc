#include "src/kernels/no_kernels.h"

namespace trireme {

const Kernels& no_kernels() {
  static const Kernels table = {
      .name = "none",
      .matmul = [](Stream&, const Matmul&) {},
      .column_sum = [](Stream&, const ColumnSum&) {},
      .embedding_forward = [](Stream&, const EmbeddingForward&) {},
      .embedding_backward = [](Stream&, const EmbeddingBackward&) {},
      .layer_norm_forward = [](Stream&, const NormForward&) {},
      .layer_norm_backward = [](Stream&, const NormBackward&) {},
      .rms_norm_forward = [](Stream&, const NormForward&) {},
      .rms_norm_backward = [](Stream&, const NormBackward&) {},
      .rope = [](Stream&, const Rope&) {},
      .attention_forward = [](Stream&, const AttentionForward&) {},
      .attention_backward = [](Stream&, const AttentionBackward&) {},
      .gelu_forward = [](Stream&, View, ConstView) {},
      .gelu_backward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_forward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_backward = [](Stream&, View, View, ConstView, ConstView, ConstView) {},
      .dropout = [](Stream&, const Dropout&) {},
      .cross_entropy = [](Stream&, const CrossEntropy&) {},
      .softmax_part = [](Stream&, const SoftmaxPart&) {},
      .cross_entropy_of_parts = [](Stream&, const CrossEntropyOfParts&) {},
      .adamw = [](Stream&, const AdamW&) {},
      .sgd = [](Stream&, const Sgd&) {},
      .moving_average = [](Stream&, const MovingAverage&) {},
      .combine = [](Stream&, const Combine&) {},
      .normalize = [](Stream&, View, ConstView, float) {},
      .sums_of_squares = [](Stream&, View, ConstView) {},
      .sum = [](Stream&, View, ConstView) {},
      .digest = [](Stream&, View, ConstView) {},
      .add = [](Stream&, View, ConstView) {},
      .add_chain = [](Stream&, View, const ConstView*, int) {},
      .cast = [](Stream&, View, ConstView) {},
      .fill = [](Stream&, View, float) {},
  };
  return table;
}

}  // namespace trireme
