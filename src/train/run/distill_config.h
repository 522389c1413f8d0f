// DistillConfig is the section `distill` of a run's configuration: the model from whose
// probabilities the run's model learns (docs/distillation.md). A plain value.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/base/config_binder.h"
#include "src/nn/model_config.h"

namespace trireme {

struct RunConfig;

struct DistillConfig {
  std::filesystem::path teacher;  // a checkpoint; empty means none
  float weight = 0.5F;            // of the divergence; that of the cross entropy is 1 - weight
  float temperature = 2;          // of both softmaxes in the divergence
  // What read_teacher() (src/train/saving/teacher_weights.h) has found in the checkpoint.
  std::optional<ModelConfig> model = {};
  std::string manifest_sha256 = {};

  bool is_on() const { return !teacher.empty(); }
  // Throws InternalError unless the teacher's checkpoint has been read.
  const ModelConfig& read_model() const;
};

// Binds the keys of the section.
void bind(ConfigBinder& binder, DistillConfig& config);
// Refuses what cannot be combined with a teacher, before its checkpoint is read.
void check_distillation(ConfigBinder& binder, const RunConfig& config);

}  // namespace trireme
