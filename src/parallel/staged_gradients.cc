#include "src/parallel/staged_gradients.h"

#include <utility>

namespace trireme {

StagedGradients::StagedGradients(const ZeroLayout& layout, const GradientReducer& reducer,
                                 DeviceContext& context, GraphRecorder& recorder,
                                 std::function<void(const View&)> watch)
    : layout_(layout),
      reducer_(reducer),
      context_(context),
      recorder_(recorder),
      watch_(std::move(watch)),
      buckets_(static_cast<std::size_t>(layout.buckets())) {}

View StagedGradients::gradient(ParameterId first, int count) {
  const int b = layout_.bucket_of(first);
  check(b >= 0, "a gradient belongs to a parameter that is trained");
  Buffer& buffer = buckets_[static_cast<std::size_t>(b)].buffer;
  if (buffer.data() == nullptr) {
    buffer = context_.activations().allocate(layout_.padded(b) * size_of(DType::f32));
    reducer_.memory().clear_gaps(b, buffer.view(DType::f32), context_);
  }
  return buffer.view(DType::f32)
      .slice(layout_.parameters()[first].offset - layout_.bucket(b).first,
             layout_.parameters().joined_elements(first, count));
}

void StagedGradients::ready(ParameterId id) {
  const int b = layout_.bucket_of(id);
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  check(bucket.buffer.data() != nullptr, "a gradient is written before it is ready");
  first_ = first_ < 0 ? id : first_;
  bucket.ready.push_back(id);
  if (static_cast<int>(bucket.ready.size()) == layout_.bucket(b).end - layout_.bucket(b).begin) {
    hand_over(b);
  }
}

void StagedGradients::finish() {
  for (int b = 0; b < layout_.buckets(); ++b) {
    if (buckets_[static_cast<std::size_t>(b)].buffer.data() != nullptr) {
      hand_over(b);
    }
  }
  first_ = -1;
}

// What the action refers to lives as long as this object.
void StagedGradients::hand_over(int b) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(b)];
  const View values = bucket.buffer.view(DType::f32).slice(0, layout_.padded(b));
  const bool has_first = first_ >= 0 && layout_.bucket_of(first_) == b && watch_ != nullptr;
  const View watched = has_first ? gradient(first_) : View{};
  recorder_.act([this, b, values, watched, ready = std::exchange(bucket.ready, {})] {
    if (!watched.empty()) {
      watch_(watched);
    }
    leaf_->receive(b, values, ready);
  });
  bucket.buffer = {};
}

}  // namespace trireme
