// Teacher is the frozen model of a run with distillation (distill.teacher): a whole model on each
// rank that has the student's head, with its weights in the run's precision. It takes part in no
// reduction and no checkpoint. Owned by Engine; one thread.
#pragma once

#include <algorithm>

#include "src/nn/teaching.h"
#include "src/train/run/distill_config.h"

namespace trireme {

// Limit of the frozen elements that are loaded at a time in f32, unless one parameter has more.
inline constexpr std::int64_t kFrozenElementsAtOnce = std::int64_t{1} << 26;

class Teacher {
 public:
  // config: read_teacher() has completed it. The weights are zeros until they are loaded.
  Teacher(const DistillConfig& config, DType compute, DeviceContext& context)
      : parameters_(context, compute),
        model_(config.read_model(), parameters_),
        teaching_{model_, parameters_, config.weight, config.temperature} {
    parameters_.allocate();
  }
  Teacher(const Teacher&) = delete;
  Teacher& operator=(const Teacher&) = delete;

  const Teaching& teaching() const { return teaching_; }
  const ParameterStore& parameters() const { return parameters_; }
  std::int64_t bytes() const {
    return parameters_.flat_elements() * size_of(parameters_.compute_dtype());
  }
  // Returns the bytes that loading the weights takes for a while.
  std::int64_t loading_bytes() const {
    std::int64_t most = kFrozenElementsAtOnce;
    for (const Parameter& each : parameters_.all()) {
      most = std::max(most, each.elements());
    }
    return std::min(most, parameters_.parameter_elements()) * size_of(DType::f32);
  }

 private:
  ParameterStore parameters_;
  Model model_;
  Teaching teaching_;
};

}  // namespace trireme
