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
