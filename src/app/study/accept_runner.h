// Measures the nodes and links of a machine for `trireme accept`.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "src/study/acceptance.h"
#include "src/study/link_rounds.h"

namespace trireme {

class AcceptRunner {
 public:
  // folder: for what the benchmarks write; all nodes see it. The profile outlives this object.
  AcceptRunner(const AcceptProfile& profile, std::filesystem::path folder);

  // Measures all nodes, in as many rounds as the profile says. A measurement that fails becomes a
  // complaint about its node. Throws a ConfigError after the first round if a limit concerns
  // nothing that was measured, or every node refused a measurement.
  std::vector<AcceptSubject> measure_nodes(const std::vector<std::string>& nodes);
  // Measures the pairs once, those of a round at the same time, and returns them in their order.
  // tag: part of the files' names.
  std::vector<AcceptSubject> measure_links(const NodePairRounds& rounds, const std::string& tag);
  int rounds_done() const { return rounds_; }

 private:
  void measure(const std::vector<std::string>& start, const std::string& what,
               const std::string& tag, AcceptSubject& subject) const;
  void measure_all(const AcceptProfile::Demands& demands, std::vector<AcceptSubject*> subjects,
                   const std::string& tag) const;

  const AcceptProfile& profile_;
  std::filesystem::path folder_;
  std::string program_;
  int rounds_ = 0;
};

}  // namespace trireme
