// GradientSink is where backward writes the gradients of one micro-batch; the code that sums them
// implements it. FlatGradients is the plain implementation: one buffer with the store's layout.
// Used by the thread that runs backward.
#pragma once

#include <functional>

#include "src/nn/parameter.h"

namespace trireme {

class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Returns f32 [elements of `count` joined parameters from `first` on], whose contents are not
  // set. It is the same memory at each call until all of these parameters are ready.
  virtual View gradient(ParameterId first, int count) = 0;
  View gradient(ParameterId id) { return gradient(id, 1); }
  // Called once per parameter, in backward order, when its gradient is final.
  virtual void ready(ParameterId id) = 0;
};

class FlatGradients : public GradientSink {
 public:
  // flat: f32 [store.flat_elements()]; must outlive this. announce, which may be empty, is called
  // with each ready parameter.
  FlatGradients(const ParameterStore& store, View flat,
                std::function<void(ParameterId)> announce = {})
      : store_(store), flat_(flat), announce_(std::move(announce)) {}
  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override {
    return flat_.slice(store_[first].offset, store_.joined_elements(first, count));
  }
  void ready(ParameterId id) override {
    if (announce_) {
      announce_(id);
    }
  }

 private:
  const ParameterStore& store_;
  View flat_;
  std::function<void(ParameterId)> announce_;
};

}  // namespace trireme
