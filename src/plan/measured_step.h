// MeasuredStep is what a training run measured of its own steps, in the parts that a run can tell
// apart, with all that a prediction of the same step needs. A run that names a cluster file leaves
// one in prediction.json, and `trireme plan calibrate` makes some by short runs. Plain values and
// pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/plan/plan_layout.h"
#include "src/plan/plan_model.h"
#include "src/plan/step_time.h"

namespace trireme {

// StepSplit is the time of a step, in seconds, as the mean over the ranks.
struct StepSplit {
  double compute = 0;     // forward and backward without any of the waits below
  double tensor = 0;      // waiting for the other ranks of tp
  double pipeline = 0;    // waiting for other stages
  double replicas = 0;    // waiting for other replicas
  double update = 0;      // the optimizer, and what else comes after backward
  double data = 0;        // waiting for the loader; not predicted
  double checkpoint = 0;  // stalls of saves

  static constexpr int kParts = 7;
  std::array<double, kParts> parts() const;
  static StepSplit of(const std::array<double, kParts>& parts);
  // Returns "compute", "tensor", ...
  static const std::array<const char*, kParts>& names();
  double total() const;
  // The part that a prediction without checkpoints is about.
  double predictable() const { return total() - data - checkpoint; }
  friend bool operator==(const StepSplit&, const StepSplit&) = default;
};

// Returns the prediction in the same parts. Recomputation counts as computing.
StepSplit split_of(const StepTime& time);

struct MeasuredStep {
  std::string name;  // of the run, for people
  PlanModel model;
  PlanPrecision precision = PlanPrecision::bf16;
  PlanLayout layout;
  std::int64_t steps = 0;  // that were measured
  StepSplit measured;
  double memory_bytes = 0;  // resident, of the rank that has most; 0 if unknown
};

nlohmann::ordered_json to_json(const StepSplit& split);
// Throws DataError if a part is missing, or is no number of seconds.
StepSplit step_split(const nlohmann::json& json);
// The object has a field for each member; to_json() and measured_step() are inverse.
nlohmann::ordered_json to_json(const MeasuredStep& step);
// Throws DataError that says what is wrong: a field is missing or no number, a size is not
// positive or absurd, a time is negative, or the layout divides nothing.
MeasuredStep measured_step(const nlohmann::json& json);

}  // namespace trireme
