// Acceptance holds what `trireme accept` has found out about a machine, and is formatted as text
// for people and as JSON. Plain values and pure functions, apart from print_acceptance().
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/study/acceptance.h"

namespace trireme {

struct Acceptance {
  std::vector<std::string> names;
  std::vector<AcceptVerdict> nodes, links;
  std::set<std::string> guilty;  // nodes whose links are bad with known-good partners, too
  std::vector<std::pair<std::string, std::string>> partner_pairs;
  std::vector<AcceptVerdict> partner_verdicts;  // on each of these pairs
  int rounds = 0;
  std::size_t link_rounds = 0;
  double seconds = 0;
  double time = 0;  // when it began, in seconds since the epoch
  AcceptProfile profile;
  std::string profile_file, profile_sha256;
  std::string profile_problem;  // of link.measures or link.limits; empty if there is none
  // Why the bad nodes are too many to be drained; empty if they are not (shared_cause()).
  std::string shared_cause;
  bool drain_asked = false;
  bool drain_done = false;

  bool accepted() const {
    const auto good = [](const AcceptVerdict& verdict) { return verdict.good(); };
    return profile_problem.empty() && std::all_of(nodes.begin(), nodes.end(), good) &&
           std::all_of(links.begin(), links.end(), good);
  }
  bool rejected() const {
    const auto bad = [](const AcceptVerdict& verdict) { return verdict.bad(); };
    return std::any_of(nodes.begin(), nodes.end(), bad) ||
           std::any_of(links.begin(), links.end(), bad);
  }
};

// Says what was not judged, and why; "" if everything was.
std::string doubt_text(const Acceptance& acceptance);

// Returns the words of the command for each node that should not run jobs.
std::vector<std::vector<std::string>> drain_commands(const Acceptance& acceptance);
// Returns the document of -J FILE (benchmarks/schema/accept-1.schema.json).
nlohmann::ordered_json to_json(const Acceptance& acceptance);
// Prints the verdicts, the sentences for the vendor and the commands that drain the bad nodes.
void print_acceptance(const Acceptance& acceptance);

}  // namespace trireme
