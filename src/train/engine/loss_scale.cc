#include "src/train/engine/loss_scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace trireme {

double loss_scale(const TrainConfig& config, const TrainingCounters& counters) {
  if (!config.scales_loss()) {
    return 1;
  }
  const LossScaleConfig& limits = config.loss_scale;
  const double scale = counters.loss_scale.scale;
  return scale > 0 && limits.growth_interval > 0 ? std::clamp(scale, limits.minimum, limits.maximum)
                                                 : limits.initial;
}

std::optional<Judgement> judge_overflow(const TrainConfig& config, const TrainingCounters& counters,
                                        double loss, double grad_norm) {
  const double scale = loss_scale(config, counters);
  const LossScaleConfig& limits = config.loss_scale;
  const bool can_fall = limits.growth_interval > 0 && scale > limits.minimum;
  if (!config.scales_loss() || !can_fall || !std::isfinite(loss) || std::isfinite(grad_norm)) {
    return std::nullopt;
  }
  Judgement judgement;
  judgement.response = Response::lower_scale;
  judgement.what = fmt::format("the gradient overflowed at loss scale {}", scale);
  return judgement;
}

void adapt_loss_scale(const TrainConfig& config, const Judgement& judgement, bool finite_gradient,
                      TrainingCounters& counters) {
  if (!config.scales_loss()) {
    return;
  }
  LossScale& state = counters.loss_scale;
  state.scale = loss_scale(config, counters);
  if (judgement.response == Response::lower_scale) {
    state.scale = std::max(state.scale / 2, config.loss_scale.minimum);
    state.steps = 0;
    ++state.overflows;
    return;
  }
  state.steps = finite_gradient ? state.steps + 1 : 0;
  const std::int64_t interval = config.loss_scale.growth_interval;
  if (interval > 0 && state.steps >= interval) {
    state.scale = std::min(2 * state.scale, config.loss_scale.maximum);
    state.steps = 0;
  }
}

std::string at_loss_scale(const TrainConfig& config, const TrainingCounters& counters) {
  return config.scales_loss() ? fmt::format(" at loss scale {}", loss_scale(config, counters)) : "";
}

}  // namespace trireme
