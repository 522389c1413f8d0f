// OptimizerConfig is the section `optimizer` of a run's configuration.
#pragma once

#include <array>
#include <string>

#include "src/base/config_binder.h"
#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"

namespace trireme {

struct OptimizerConfig {
  std::string name = "adamw";
  float lr = 3e-4F;
  std::array<double, 2> betas = {0.9, 0.95};
  float eps = 1e-8F;
  float weight_decay = 0.1F;
  float momentum = 0.9F;
  bool nesterov = false;
  float ema = 0;            // decay of the moving average of the weights; 0 means none
  bool keep_zeros = false;  // whether weights of matrices that are zero stay zero
  float clip = 1.0F;        // limit of the global gradient norm; 0 means none
  Schedule schedule;        // lr and steps are set from the fields above and train.steps

  OptimizerOptions options() const;
};

// Binds the keys of the section `optimizer`.
void bind(ConfigBinder& binder, OptimizerConfig& optimizer);

}  // namespace trireme
