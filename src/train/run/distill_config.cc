#include "src/train/run/distill_config.h"

#include <utility>

#include "src/base/error.h"
#include "src/train/run/run_config.h"

namespace trireme {

const ModelConfig& DistillConfig::read_model() const {
  check(model.has_value(), "the teacher's checkpoint is read before its model is built");
  return *model;
}

void bind(ConfigBinder& b, DistillConfig& c) {
  constexpr double kHottest = 1000;
  b.path("distill.teacher", c.teacher,
         "checkpoint of a model of the same vocabulary, from whose probabilities the run's model "
         "learns as well; also read when the run resumes; empty: from the data alone "
         "(docs/distillation.md)");
  b.real("distill.weight", c.weight,
         "weight of the divergence from the teacher in the loss; the cross entropy with the data "
         "has the rest")
      .at_least(0)
      .at_most(1);
  b.real("distill.temperature", c.temperature,
         "temperature at which the probabilities of both models are compared; above 1, unlikely "
         "tokens count more")
      .above(0)
      .at_most(kHottest);
}

void check_distillation(ConfigBinder& b, const RunConfig& c) {
  if (!c.distill.is_on()) {
    // The configuration that a run writes down contains the defaults.
    const DistillConfig defaults;
    for (const auto& [key, differs] :
         {std::pair("distill.weight", c.distill.weight != defaults.weight),
          std::pair("distill.temperature", c.distill.temperature != defaults.temperature)}) {
      if (differs) {
        b.refuse(key, "there is no teacher: name its checkpoint in distill.teacher");
      }
    }
    return;
  }
  if (c.parallel.tp.integer != 1) {
    b.refuse("distill.teacher",
             "a teacher needs parallel.tp 1: the divergence is computed over the whole vocabulary, "
             "which tensor-parallel ranks divide");
  }
  if (c.train.attends_by_cudnn()) {
    b.refuse("distill.teacher",
             "a teacher is not supported with train.attention cudnn: set train.attention to own");
  }
}

}  // namespace trireme
