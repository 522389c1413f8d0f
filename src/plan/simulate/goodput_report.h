// Formats the result of simulations as the output of `trireme plan simulate`. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/plan/simulate/goodput.h"
#include "src/plan/simulate/run_journal.h"

namespace trireme {

struct GoodputReport {
  JobModel model;
  std::vector<std::string> notes = {};  // what the model rests on, one line each
  std::uint64_t seed = 0;
  Goodput goodput;
  std::vector<Measure> measures;  // may be empty
};

std::string to_text(const GoodputReport& report);
nlohmann::ordered_json to_json(const GoodputReport& report);
// Draws the distribution of goodput as SVG: the fraction of draws that do not exceed each value.
std::string to_svg(const GoodputReport& report);

// The replay of a journal beside what was measured.
std::string to_text(const RunJournal& journal, const SimulatedRun& replayed);
nlohmann::ordered_json to_json(const RunJournal& journal, const SimulatedRun& replayed);

}  // namespace trireme
