// The figures that `trireme accept` judges: what was measured on each node and link, and which
// limits of the profile concern it. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/study/accept_profile.h"
#include "src/study/measured_result.h"

namespace trireme {

// The values of one figure, one for each round.
struct AcceptValues {
  Better better = Better::higher;
  std::string unit;  // for people; may be empty
  std::vector<double> values;
  std::string details = {};  // parameters that its name leaves out: "m=512 precision=fp32"
  bool lost = false;         // parts of the time that were lost; the speed is what remained
  bool compared = true;      // with other subjects; otherwise only limits count
};

// What was measured on a node, or between two.
struct AcceptSubject {
  std::vector<std::string> nodes;                // one, or two
  std::map<std::string, AcceptValues> measured;  // by name
  std::set<std::string> complaints;              // of health, or of a measurement that failed
  // Why a measurement was refused as wrong usage or configuration, by the measurement's words.
  std::map<std::string, std::string> refused = {};
  // The part of its time that a measurement waited for a core, the most of all rounds.
  std::map<std::string, double> waited = {};
};

// Adds the rates and complaints that `trireme health --json` printed. Throws DataError, also if
// there are neither rates nor complaints.
void add_health(std::string_view text, AcceptSubject& subject);
// Adds the medians of the judged samples of a benchmark, its rates, and the part of the time that
// was lost. Throws DataError if there is nothing of this kind.
void add_result(const MeasuredResult& result, AcceptSubject& subject);

// Returns the value as a speed, of which more is better.
double speed_of(double value, const AcceptValues& of);

struct AcceptLimit {
  std::string name;  // as in the profile
  double value = 0;
};
// Returns the strictest limit whose words all occur in the name or the details of the figure:
// "gemm precision=fp32 flops_per_s", for example.
std::optional<AcceptLimit> limit_of(const std::string& name, const AcceptValues& values,
                                    const AcceptProfile::Demands& demands);

// Returns what is wrong with the profile if every subject refused a measurement; otherwise "". key:
// "node" or "link".
std::string refused_problem(const std::vector<AcceptSubject>& subjects, const std::string& key);

// Returns what is wrong with the limits, and the names that there are: a limit that concerns no
// figure, or figures with different units. Returns "" if all is well, or if there are complaints
// about every subject, so that figures may be missing. key: of the profile, "node.limits".
std::string limit_problem(const std::vector<AcceptSubject>& subjects,
                          const AcceptProfile::Demands& demands, const std::string& key);

}  // namespace trireme
