#include "benchmarks/measured_rows.h"

#include <utility>

namespace trireme {

void MeasuredRows::begin(nlohmann::ordered_json params) {
  const std::lock_guard lock(mutex_);
  params_ = std::move(params);
  rows_ = nlohmann::ordered_json::array();
}

void MeasuredRows::add(nlohmann::ordered_json row) {
  const std::lock_guard lock(mutex_);
  row["params"].update(params_);
  rows_.push_back(std::move(row));
}

nlohmann::ordered_json MeasuredRows::all() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

void add_row(nlohmann::ordered_json& results, nlohmann::ordered_json row, MeasuredRows* rows) {
  if (rows != nullptr) {
    rows->add(row);
  }
  results.push_back(std::move(row));
}

}  // namespace trireme
