// ValidationHistory is what a run keeps of its evaluations: which steps were the best, how many
// evaluations in a row brought no improvement, and whether the newest step still has to be
// evaluated. It is part of the training counters, so that a resumed run decides as an uninterrupted
// one does. A plain value.
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

// PendingEvaluation belongs to a step that was saved before it was evaluated. The checkpoint stores
// what the step's line in metrics.jsonl needs, and a run that resumes from it evaluates the step
// first.
struct PendingEvaluation {
  double loss = 0;  // of the training step
  double grad_norm = 0;
  friend bool operator==(const PendingEvaluation&, const PendingEvaluation&) = default;
};

struct ValidationHistory {
  std::vector<EvaluatedStep> best = {};  // lowest loss first; of equal losses, the older first
  std::optional<double> reference = {};  // what the next evaluation has to improve on
  std::int64_t without_improvement = 0;  // number of evaluations in a row
  std::optional<PendingEvaluation> pending = {};

  bool empty() const { return best.empty() && !reference && !pending; }
  bool is_best(std::int64_t step) const;
  friend bool operator==(const ValidationHistory&, const ValidationHistory&) = default;
};

// Adds the evaluation of a step, and clears `pending`. An improvement is a loss below reference -
// min_delta, which then becomes the reference. A loss that is not finite (as of a failed
// evaluation) changes nothing else. keep: number of best steps to keep.
void note_evaluation(ValidationHistory& history, const EvaluatedStep& evaluated, std::int64_t keep,
                     double min_delta);

nlohmann::json to_json(const ValidationHistory& history);
// Throws DataError if a field is missing, of another type, or impossible.
ValidationHistory validation_history_from_json(const nlohmann::json& json);

}  // namespace trireme
