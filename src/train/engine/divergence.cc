#include "src/train/engine/divergence.h"

#include <cmath>

#include "src/base/error.h"

namespace trireme {
namespace {

// Precondition: validated by RunConfig.
Response response_of(const std::string& word) {
  if (word == "ignore") {
    return Response::update;
  }
  if (word == "warn") {
    return Response::warn;
  }
  if (word == "skip") {
    return Response::skip;
  }
  return word == "rewind" ? Response::rewind : Response::stop;
}

std::string text_of(double value, double score, double most) {
  return score > most ? fmt::format("{:.6g}, {:.1f} deviations above the median", value, score)
                      : fmt::format("{:.6g}", value);
}

}  // namespace

Judgement judge(const DivergenceConfig& config, const TrainingCounters& counters, double loss,
                double grad_norm) {
  Judgement judgement;
  judgement.finite = std::isfinite(loss) && std::isfinite(grad_norm);
  if (!judgement.finite) {
    judgement.response = response_of(config.not_finite);
    judgement.what = fmt::format("loss {:.6g}, gradient norm {:.6g}", loss, grad_norm);
    return judgement;
  }
  if (config.spike == "ignore") {
    return judgement;
  }
  judgement.scores = spike_scores(counters.history, config.window, loss, grad_norm);
  if (judgement.scores.loss > config.threshold || judgement.scores.norm > config.threshold) {
    judgement.response = response_of(config.spike);
    judgement.what = fmt::format("loss {}; gradient norm {}",
                                 text_of(loss, judgement.scores.loss, config.threshold),
                                 text_of(grad_norm, judgement.scores.norm, config.threshold));
  }
  return judgement;
}

void note_judged(const DivergenceConfig& config, const Judgement& judgement, double loss,
                 double grad_norm, TrainingCounters& counters) {
  if (judgement.response == Response::lower_scale) {
    ++counters.skipped_steps;
    return;
  }
  if (!judgement.updates()) {
    ++counters.skipped_steps;
    ++counters.skipped_in_a_row;
    return;
  }
  counters.skipped_in_a_row = 0;
  if (config.spike != "ignore") {
    remember(counters.history, config.window, loss, grad_norm);
  }
}

std::string consequence(const Judgement& judgement, std::int64_t step,
                        const TrainingCounters& counters, std::int64_t most_skipped) {
  switch (judgement.response) {
    case Response::warn:
      return fmt::format(
          "the update is made (divergence.spike: warn); `trireme train CONFIG --replay {}` finds "
          "out whether data or hardware caused it",
          step);
    case Response::skip:
      return fmt::format("skipped, weights and moments are unchanged ({} in a row, {} allowed)",
                         counters.skipped_in_a_row, most_skipped);
    case Response::lower_scale:
      return fmt::format("skipped, the next step has loss scale {}", counters.loss_scale.scale);
    default:
      return "weights and moments are unchanged";
  }
}

}  // namespace trireme
