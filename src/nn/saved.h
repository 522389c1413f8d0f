// Saved holds the tensors that backward needs from forward, for one micro-batch in flight, as a
// stack: each layer's forward pushes them, and its backward pops them in the opposite order. Owned
// by the code that runs the micro-batch; one thread.
#pragma once

#include <vector>

#include "src/tensor/tensor.h"

namespace trireme {

class Saved {
 public:
  Saved() = default;
  // Returns a Saved that discards what is pushed, for passes without a backward.
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
