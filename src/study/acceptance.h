// Judges the nodes and links of a machine by what was measured on them. Pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/study/accept_figures.h"
#include "src/study/accept_profile.h"

namespace trireme {

// A figure of a node or link, and how it was judged.
struct AcceptFigure {
  std::string name;
  double value = 0;    // median over the rounds
  double typical = 0;  // median over all subjects
  std::string unit;
  double percent = 0;        // of the typical speed
  double score = 0;          // robust standard deviations below it
  bool limit = false;        // whether an absolute limit was missed
  bool slow = false;         // compared with the others
  std::string details = {};  // parameters that the name leaves out
  bool more_is_better = true;
  std::optional<AcceptLimit> agreed = {};
  double limit_percent = 0;  // of the speed that the limit demands
};

struct AcceptVerdict {
  std::vector<std::string> nodes;
  std::vector<AcceptFigure> findings;  // figures that are bad, the worst first
  std::vector<std::string> complaints;
  std::vector<AcceptFigure> figures = {};  // all that were measured
  std::vector<std::string> notes = {};     // what may have disturbed the measurements
  bool judged = true;                      // whether a figure was compared or has a limit
  bool bad() const { return !findings.empty() || !complaints.empty(); }
  bool good() const { return judged && !bad(); }
};

// Judges subjects among each other: a value is too slow if it is below `at_least` percent of the
// median's speed and further below it than `score` robust standard deviations (0.6745 (x - median)
// / MAD), or beyond an absolute limit. With fewer than three subjects only limits count; a subject
// that has none then is not judged.
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

// Returns "622 us", with a prefix for rates.
std::string figure_text(double value, const std::string& unit);
// Returns the verdict on a line of a table: "good", "BAD: ..." with the worst finding, "not judged"
// or "not measured".
std::string short_text(const AcceptVerdict& verdict);
// Returns a sentence for the vendor about a verdict that is bad.
std::string sentence(const AcceptVerdict& verdict, int rounds);
// Returns a short reason, for Slurm.
std::string reason(const AcceptVerdict& verdict);

}  // namespace trireme
