// Where backward leaves the gradients of one micro-batch: an interface that whoever sums gradients
// implements. FlatGradients is the plain one: a buffer laid out like the store.
#pragma once

#include <functional>

#include "src/nn/parameter.h"

namespace trireme {

class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // f32 [elements of `count` joined parameters, from `first` on], to be overwritten. The same
  // memory until all of them are ready.
  virtual View gradient(ParameterId first, int count) = 0;
  View gradient(ParameterId id) { return gradient(id, 1); }
  // Called once for every parameter when its gradient is final, in backward order.
  virtual void ready(ParameterId id) = 0;
};

class FlatGradients : public GradientSink {
 public:
  // flat: f32 [store.flat_elements()]. announce may be empty.
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
