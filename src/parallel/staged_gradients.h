// StagedGradients is the sink of a backward pass that is recorded and repeated (RecordedWork). It
// gives each bucket of gradients the same memory in every repetition, and hands the bucket to the
// micro-batch's GradientLeaf as soon as it is complete, by an action of the host, which may add,
// copy and reduce it. The memory is free again after that, so that it holds few buckets at a time.
// Owned by the code that repeats the pass; one thread.
#pragma once

#include <functional>
#include <vector>

#include "src/compute/recorded_work.h"
#include "src/nn/gradient_sink.h"
#include "src/parallel/gradient_reducer.h"

namespace trireme {

class StagedGradients : public GradientSink {
 public:
  // context: where the pass computes; buckets come from its pool of activations. watch, unless it
  // is empty: called on the host with the first gradient of each pass, once its bucket is complete.
  // All of it outlives this.
  StagedGradients(const ZeroLayout& layout, const GradientReducer& reducer, DeviceContext& context,
                  GraphRecorder& recorder, std::function<void(const View&)> watch);

  // Names the leaf for which a pass computes, before the pass is performed or repeated.
  void begin(GradientLeaf& leaf) { leaf_ = &leaf; }
  // Called by the pass when its last gradient is written: hands over the buckets that lack
  // gradients, which others add.
  void finish();

  using GradientSink::gradient;
  View gradient(ParameterId first, int count) override;
  void ready(ParameterId id) override;

 private:
  struct Bucket {
    Buffer buffer;                   // f32 [padded] while its gradients are computed
    std::vector<ParameterId> ready;  // in the order of backward
  };
  void hand_over(int bucket);

  const ZeroLayout& layout_;
  const GradientReducer& reducer_;
  DeviceContext& context_;
  GraphRecorder& recorder_;
  std::function<void(const View&)> watch_;
  std::vector<Bucket> buckets_;
  ParameterId first_ = -1;  // the pass's first parameter that was ready; -1: none yet
  GradientLeaf* leaf_ = nullptr;
};

}  // namespace trireme
