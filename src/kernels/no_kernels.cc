#include "src/kernels/no_kernels.h"

#include <algorithm>

namespace trireme {
namespace {

thread_local ProductRecording* recording = nullptr;

std::uintptr_t offset_of(const ConstView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % kRecordedAlignment;
}

bool is_alike(const ConstView& a, const ConstView& b) {
  return a.empty() == b.empty() && a.dtype == b.dtype && offset_of(a) == offset_of(b);
}

bool is_alike(const Matmul& a, const Matmul& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && is_alike(a.a, b.a) && is_alike(a.b, b.b) &&
         is_alike(a.c, b.c) && is_alike(a.bias, b.bias) && is_alike(a.aux, b.aux) &&
         a.transpose_a == b.transpose_a && a.transpose_b == b.transpose_b &&
         a.accumulate == b.accumulate && a.epilogue == b.epilogue && a.pitch_a == b.pitch_a &&
         a.pitch_b == b.pitch_b && a.pitch_c == b.pitch_c && a.fp8_a.format == b.fp8_a.format &&
         a.fp8_b.format == b.fp8_b.format;
}

void record(Stream&, const Matmul& product) {
  if (recording != nullptr) {
    recording->note(product);
  }
}

bool is_alike(const AttentionForward& a, const AttentionForward& b) {
  return a.batch == b.batch && a.time == b.time && a.kv_time == b.kv_time && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.q_stride == b.q_stride &&
         a.kv_stride == b.kv_stride && is_alike(a.q, b.q) && is_alike(a.k, b.k) &&
         is_alike(a.v, b.v) && is_alike(a.lse, b.lse) && is_alike(a.slopes, b.slopes);
}

void record_attention(Stream&, const AttentionForward& call) {
  if (recording != nullptr) {
    recording->note(call, false);
  }
}

void record_gradient(Stream&, const AttentionBackward& call) {
  if (recording != nullptr) {
    recording->note(call.forward, true);
  }
}

}  // namespace

ProductRecording::ProductRecording() {
  check(recording == nullptr, "a thread records products once at a time");
  recording = this;
}

ProductRecording::~ProductRecording() { recording = nullptr; }

void ProductRecording::note(const Matmul& product) {
  const bool is_known = std::any_of(products_.begin(), products_.end(),
                                    [&](const Matmul& known) { return is_alike(known, product); });
  if (!is_known) {
    products_.push_back(product);
  }
}

void ProductRecording::note(const AttentionForward& call, bool backward) {
  std::vector<AttentionForward>& calls = backward ? gradients_ : forwards_;
  const bool is_known = std::any_of(calls.begin(), calls.end(), [&](const AttentionForward& known) {
    return is_alike(known, call);
  });
  if (!is_known) {
    calls.push_back(call);
  }
}

const Kernels& no_kernels() {
  static const Kernels table = {
      .name = "none",
      .matmul = record,
      .column_sum = [](Stream&, const ColumnSum&) {},
      .embedding_forward = [](Stream&, const EmbeddingForward&) {},
      .embedding_backward = [](Stream&, const EmbeddingBackward&) {},
      .layer_norm_forward = [](Stream&, const NormForward&) {},
      .layer_norm_backward = [](Stream&, const NormBackward&) {},
      .rms_norm_forward = [](Stream&, const NormForward&) {},
      .rms_norm_backward = [](Stream&, const NormBackward&) {},
      .rope = [](Stream&, const Rope&) {},
      .attention_forward = record_attention,
      .attention_backward = record_gradient,
      .gelu_forward = [](Stream&, View, ConstView) {},
      .gelu_backward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_forward = [](Stream&, View, ConstView, ConstView) {},
      .swiglu_backward = [](Stream&, View, View, ConstView, ConstView, ConstView) {},
      .dropout = [](Stream&, const Dropout&) {},
      .cross_entropy = [](Stream&, const CrossEntropy&) {},
      .softmax_part = [](Stream&, const SoftmaxPart&) {},
      .cross_entropy_of_parts = [](Stream&, const CrossEntropyOfParts&) {},
      .distillation = [](Stream&, const Distillation&) {},
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
      .zero_where_zero = [](Stream&, View, ConstView) {},
      .cast = [](Stream&, View, ConstView) {},
      .fill = [](Stream&, View, float) {},
      .scale = [](Stream&, View, float) {},
  };
  return table;
}

}  // namespace trireme
