// MeasuredRows keeps the rows of a benchmark while it measures, so that another thread can report
// them if the benchmark does not end. Any thread may call it.
#pragma once

#include <mutex>

#include <nlohmann/json.hpp>

namespace trireme {

class MeasuredRows {
 public:
  // Forgets all rows. params: added to the parameters of each row from now on.
  void begin(nlohmann::ordered_json params = nlohmann::ordered_json::object());
  void add(nlohmann::ordered_json row);
  // Returns the rows so far, in their order.
  nlohmann::ordered_json all() const;

 private:
  mutable std::mutex mutex_;
  nlohmann::ordered_json params_ = nlohmann::ordered_json::object();
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

// Adds a row {name, params, ...} to the results and, unless it is null, to `rows`.
void add_row(nlohmann::ordered_json& results, nlohmann::ordered_json row, MeasuredRows* rows);

}  // namespace trireme
