#include "src/parallel/gradient_leaf.h"

#include <utility>

#include "src/base/error.h"

namespace trireme {

GradientLeaf::GradientLeaf(const ZeroLayout& layout, GradientMemory& memory,
                           std::function<void(int bucket)> announce)
    : layout_(layout),
      memory_(memory),
      announce_(std::move(announce)),
      is_ready_(static_cast<std::size_t>(layout.parameters().count()), false),
      buffers_(static_cast<std::size_t>(layout.buckets())) {
  for (int b = 0; b < layout.buckets(); ++b) {
    missing_.push_back(layout.bucket(b).end - layout.bucket(b).begin);
  }
}

int GradientLeaf::bucket_of(ParameterId id) const {
  const bool known = id >= 0 && id < layout_.parameters().count() && layout_.bucket_of(id) >= 0;
  check(known, "a gradient belongs to a parameter that is trained");
  check(!is_ready_[static_cast<std::size_t>(id)],
        "a gradient is ready once per parameter and micro-batch, and not changed afterwards");
  return layout_.bucket_of(id);
}

View GradientLeaf::gradient(ParameterId first, int count) {
  const int b = bucket_of(first);
  Buffer& buffer = buffers_[static_cast<std::size_t>(b)];
  if (buffer.data() == nullptr) {
    buffer = memory_.take_whole(b);
  }
  return buffer.view(DType::f32)
      .slice(layout_.parameters()[first].offset - layout_.bucket(b).first,
             layout_.parameters().joined_elements(first, count));
}

void GradientLeaf::ready(ParameterId id) {
  const int b = bucket_of(id);
  check(buffers_[static_cast<std::size_t>(b)].data() != nullptr,
        "a gradient is written before it is ready");
  is_ready_[static_cast<std::size_t>(id)] = true;
  if (--missing_[static_cast<std::size_t>(b)] == 0) {
    announce_(b);
  }
}

void GradientLeaf::receive(int bucket, const View& values, const std::vector<ParameterId>& ready) {
  check(buffers_[static_cast<std::size_t>(bucket)].data() == nullptr,
        "a bucket is computed in one place");
  for (const ParameterId id : ready) {
    check(bucket_of(id) == bucket, "a bucket has its own parameters");
    is_ready_[static_cast<std::size_t>(id)] = true;
    --missing_[static_cast<std::size_t>(bucket)];
  }
  staged_bucket_ = bucket;
  staged_ = values;
  if (complete(bucket)) {
    announce_(bucket);
  }
  if (staged_bucket_ == bucket) {  // it has to wait: for its other parameters, or earlier leaves
    buffers_[static_cast<std::size_t>(bucket)] = take(bucket);
  }
}

Buffer GradientLeaf::take(int bucket) {
  if (bucket == staged_bucket_) {
    staged_bucket_ = -1;
    return memory_.copy_whole(bucket, staged_);
  }
  return std::move(buffers_[static_cast<std::size_t>(bucket)]);
}

void GradientLeaf::check_complete() const {
  for (int b = 0; b < layout_.buckets(); ++b) {
    for (ParameterId id = layout_.bucket(b).begin; id < layout_.bucket(b).end; ++id) {
      if (!is_ready_[static_cast<std::size_t>(id)]) {
        check(false, fmt::format("the backward pass gave no gradient for {}",
                                 layout_.parameters()[id].name)
                         .c_str());
      }
    }
  }
}

}  // namespace trireme
