// ValidationHistory: what a run remembers of its evaluations: which steps were the best, how many
// did not improve, and whether the newest step still has to be evaluated. Part of the training
// counters, so that a resumed run decides as an uninterrupted one does. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

struct EvaluatedStep {
  std::int64_t step = 0;
  double loss = 0;  // nats per token
  friend bool operator==(const EvaluatedStep&, const EvaluatedStep&) = default;
};

// A step is saved before it is evaluated. Its checkpoint says so, with what its line in
// metrics.jsonl needs, and a run that resumes from it evaluates it first.
struct PendingEvaluation {
  double loss = 0;  // of the training step
  double grad_norm = 0;
  friend bool operator==(const PendingEvaluation&, const PendingEvaluation&) = default;
};

struct ValidationHistory {
  std::vector<EvaluatedStep> best = {};  // the lowest loss first; equal losses: the older first
  std::optional<double> reference = {};  // what the next evaluation has to improve on
  std::int64_t without_improvement = 0;  // evaluations in a row
  std::optional<PendingEvaluation> pending = {};

  bool empty() const { return best.empty() && !reference && !pending; }
  bool is_best(std::int64_t step) const;
  friend bool operator==(const ValidationHistory&, const ValidationHistory&) = default;
};

// Adds the loss of a step and ends its pending evaluation. An improvement is a loss of less than
// the reference - min_delta, which then becomes the reference. A loss that is not finite (an
// evaluation that failed, say) changes neither. keep: how many best steps are remembered.
void note_evaluation(ValidationHistory& history, const EvaluatedStep& evaluated, std::int64_t keep,
                     double min_delta);

nlohmann::json to_json(const ValidationHistory& history);
// DataError if a field is missing, of another type, or impossible.
ValidationHistory validation_history_from_json(const nlohmann::json& json);

}  // namespace trireme
