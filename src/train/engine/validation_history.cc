#include "src/train/engine/validation_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "src/base/json_number.h"

namespace trireme {
namespace {

// JSON has no NaN: values that are not finite are written as null.
double number_or_nan(const nlohmann::json& object, const char* name) {
  return field(object, name).is_null() ? std::numeric_limits<double>::quiet_NaN()
                                       : finite_field(object, name);
}

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

bool ValidationHistory::is_best(std::int64_t step) const {
  return std::any_of(best.begin(), best.end(),
                     [step](const EvaluatedStep& kept) { return kept.step == step; });
}

void note_evaluation(ValidationHistory& history, const EvaluatedStep& evaluated, std::int64_t keep,
                     double min_delta) {
  history.pending.reset();
  if (!std::isfinite(evaluated.loss)) {
    return;
  }
  const auto worse =
      std::find_if(history.best.begin(), history.best.end(),
                   [&](const EvaluatedStep& kept) { return kept.loss > evaluated.loss; });
  history.best.insert(worse, evaluated);
  if (static_cast<std::int64_t>(history.best.size()) > keep) {
    history.best.resize(static_cast<std::size_t>(keep));
  }
  if (!history.reference || evaluated.loss < *history.reference - min_delta) {
    history.reference = evaluated.loss;
    history.without_improvement = 0;
  } else {
    ++history.without_improvement;
  }
}

nlohmann::json to_json(const ValidationHistory& history) {
  nlohmann::json json = {{"best", nlohmann::json::array()},
                         {"without_improvement", history.without_improvement}};
  for (const EvaluatedStep& kept : history.best) {
    json["best"].push_back({{"step", kept.step}, {"loss", kept.loss}});
  }
  if (history.reference) {
    json["reference"] = *history.reference;
  }
  if (history.pending) {
    json["pending"] = {{"loss", number_or_null(history.pending->loss)},
                       {"grad_norm", number_or_null(history.pending->grad_norm)}};
  }
  return json;
}

ValidationHistory validation_history_from_json(const nlohmann::json& json) {
  ValidationHistory history;
  history.without_improvement = count_field(json, "without_improvement");
  for (const nlohmann::json& kept : array_field(json, "best")) {
    history.best.push_back({count_field(kept, "step"), finite_field(kept, "loss")});
  }
  if (json.contains("reference")) {
    history.reference = finite_field(json, "reference");
  }
  if (json.contains("pending")) {
    const nlohmann::json& pending = object_field(json, "pending");
    history.pending = {number_or_nan(pending, "loss"), number_or_nan(pending, "grad_norm")};
  }
  return history;
}

}  // namespace trireme
