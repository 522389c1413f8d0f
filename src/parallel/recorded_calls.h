// RecordedGroup and RecordedResidence stand between a pass that is recorded (GraphRecorder) and the
// ranks that it communicates with: each call becomes an action of the host, which is repeated with
// the pass. Owned by the code that repeats the pass; one thread.
#pragma once

#include <vector>

#include "src/compute/recorded_work.h"
#include "src/nn/parameter_residence.h"
#include "src/nn/tensor_group.h"

namespace trireme {

class RecordedGroup : public TensorGroup {
 public:
  // pool: for the tensors that are exchanged; repeated passes use the same memory. All arguments
  // outlive this.
  RecordedGroup(TensorGroup& to, Pool& pool, GraphRecorder& recorder)
      : to_(to), pool_(pool), recorder_(recorder) {}

  // Called before a pass is performed or repeated: numbers of operations begin with 1 again.
  void begin() { started_ = 0; }

  int rank() const override { return to_.rank(); }
  int size() const override { return to_.size(); }
  Pool& pool() override { return pool_; }
  Exchange start_sum(View data) override { return start(data, &TensorGroup::start_sum); }
  Exchange start_scatter_sum(View data) override {
    return start(data, &TensorGroup::start_scatter_sum);
  }
  Exchange start_gather(View data) override { return start(data, &TensorGroup::start_gather); }
  void finish(Exchange exchange) override;

 private:
  Exchange start(View data, Exchange (TensorGroup::*operation)(View));

  TensorGroup& to_;
  Pool& pool_;
  GraphRecorder& recorder_;
  Exchange started_ = 0;
  std::vector<Exchange> numbers_;  // those of to_ in the present repetition, by number here minus 1
};

class RecordedResidence : public ParameterResidence {
 public:
  // The addresses of parameters must not change: no ZeRO 3.
  RecordedResidence(ParameterResidence& to, GraphRecorder& recorder)
      : to_(to), recorder_(recorder) {}
  void need(ParameterId first, ParameterId end) override {
    recorder_.act([this, first, end] { to_.need(first, end); });
  }
  void prefetch(ParameterId first, ParameterId end) override {
    recorder_.act([this, first, end] { to_.prefetch(first, end); });
  }
  void release(ParameterId first, ParameterId end) override {
    recorder_.act([this, first, end] { to_.release(first, end); });
  }

 private:
  ParameterResidence& to_;
  GraphRecorder& recorder_;
};

}  // namespace trireme
