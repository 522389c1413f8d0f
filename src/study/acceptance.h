// Judges the nodes and links of a machine by what was measured on them. Pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/study/accept_profile.h"
#include "src/study/measured_result.h"

namespace trireme {

// The values of one measurement, one for each round.
struct AcceptValues {
  Better better = Better::higher;
  std::string unit;  // for people; may be empty
  std::vector<double> values;
};

// What was measured on a node, or between two.
struct AcceptSubject {
  std::vector<std::string> nodes;                // one, or two
  std::map<std::string, AcceptValues> measured;  // by name
  std::set<std::string> complaints;              // of health, or of a measurement that failed
};

// Adds the rates and complaints that `trireme health --json` printed. Throws DataError.
void add_health(std::string_view text, AcceptSubject& subject);
// Adds the medians of the judged samples of a benchmark.
void add_result(const MeasuredResult& result, AcceptSubject& subject);

struct AcceptFinding {
  std::string name;    // of the measurement
  double value = 0;    // median over the rounds
  double typical = 0;  // median over all subjects
  std::string unit;
  double percent = 0;  // of the typical speed
  double score = 0;    // robust standard deviations below it
  bool limit = false;  // whether an absolute limit was missed
};

struct AcceptVerdict {
  std::vector<std::string> nodes;
  std::vector<AcceptFinding> findings;  // the worst first
  std::vector<std::string> complaints;
  bool good() const { return findings.empty() && complaints.empty(); }
};

// Judges subjects among each other: a value is too slow if it is below `at_least` percent of the
// median's speed and further below it than `score` robust standard deviations (0.6745 (x - median)
// / MAD), or beyond an absolute limit. With fewer than three subjects only limits count.
std::vector<AcceptVerdict> judge(const std::vector<AcceptSubject>& subjects,
                                 const AcceptProfile::Demands& demands);

// Chooses the pairs that tell which end of a bad link is at fault: each end with up to two nodes
// of which all links are good. Returns (suspect, partner); empty if there is no such node.
std::vector<std::pair<std::string, std::string>> partner_tests(
    const std::vector<AcceptVerdict>& links, const std::set<std::string>& bad_nodes);

// Returns the nodes whose links to known-good partners are bad, too. `tested`: verdicts on the
// pairs of partner_tests(), in its order.
std::set<std::string> guilty_ends(const std::vector<std::pair<std::string, std::string>>& pairs,
                                  const std::vector<AcceptVerdict>& tested);

// Returns why it is unlikely that `bad` of `all` nodes are at fault themselves, and what to do, if
// these are more than `most_percent`; otherwise "".
std::string shared_cause(std::size_t bad, std::size_t all, double most_percent);

// Returns a sentence for the vendor about a verdict that is not good.
std::string sentence(const AcceptVerdict& verdict, int rounds);
// Returns a short reason, for Slurm.
std::string reason(const AcceptVerdict& verdict);

}  // namespace trireme
