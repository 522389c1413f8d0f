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
  int rounds = 0;
  std::size_t link_rounds = 0;
  double seconds = 0;
  // Why the bad nodes are too many to be drained; empty if they are not (shared_cause()).
  std::string shared_cause;
  bool drain_asked = false;
  bool drain_done = false;

  bool accepted() const {
    const auto good = [](const AcceptVerdict& verdict) { return verdict.good(); };
    return std::all_of(nodes.begin(), nodes.end(), good) &&
           std::all_of(links.begin(), links.end(), good);
  }
};

// Returns the words of the command for each node that should not run jobs.
std::vector<std::vector<std::string>> drain_commands(const Acceptance& acceptance);
// Returns the document of -J FILE (benchmarks/schema/accept-1.schema.json).
nlohmann::ordered_json to_json(const Acceptance& acceptance);
// Prints the verdicts, the sentences for the vendor and the commands that drain the bad nodes.
void print_acceptance(const Acceptance& acceptance);

}  // namespace trireme
