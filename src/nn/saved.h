// Saved: what backward needs of forward, for one micro-batch in flight: a stack. Each layer's
// forward pushes, its backward pops in the opposite order. Owned by whoever runs the micro-batch.
#pragma once

#include <vector>

#include "src/tensor/tensor.h"

namespace trireme {

class Saved {
 public:
  Saved() = default;
  // One that keeps nothing: for passes without a backward.
  static Saved nothing() {
    Saved saved;
    saved.keeps_ = false;
    return saved;
  }

  bool keeps() const { return keeps_; }
  void push(const Tensor& tensor) {
    if (keeps_) {
      bytes_ += tensor.view().bytes();
      stack_.push_back(tensor);
    }
  }
  Tensor pop() {
    check(!stack_.empty(), "backward pops what forward pushed");
    Tensor tensor = std::move(stack_.back());
    stack_.pop_back();
    bytes_ -= tensor.view().bytes();
    return tensor;
  }
  bool empty() const { return stack_.empty(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  bool keeps_ = true;
  std::int64_t bytes_ = 0;
  std::vector<Tensor> stack_;
};

}  // namespace trireme
