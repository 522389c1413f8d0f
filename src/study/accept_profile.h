// AcceptProfile says how the nodes and links of a machine are measured for its acceptance, and what
// they must reach. It is read from a YAML file such as configs/accept/slurm.yaml. Plain values.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace trireme {

struct AcceptProfile {
  // Each measurement keeps a thread and a launcher on this node.
  static constexpr std::size_t kMostAtOnce = 256;

  // What is demanded of one kind of measurement.
  struct Demands {
    // Words of the command that starts a program on a node, or on two. {node}, {a} and {b} are
    // replaced by names of nodes.
    std::vector<std::string> start;
    std::vector<std::string> measures;  // "health", or arguments of trireme bench
    double at_least = 0;                // percent of the median of all
    double score = 3;                   // and at least this many robust standard deviations from it
    // Absolute limits by words of a figure's name (accept_figures.h): the least rate, or the
    // longest time.
    std::map<std::string, double> limits;
  };

  std::string nodes;  // a host list; empty for the nodes of the Slurm job
  std::string program;
  int rounds = 3;              // of measurements of each node
  double burn_in_minutes = 0;  // repeat the rounds until this time has passed
  int link_rounds = 0;         // of pairs of nodes; 0 for as many as link_rounds.h says
  int at_once = 0;             // nodes or pairs measured at the same time; 0 for kMostAtOnce
  double seconds = 120;        // limit for one measurement
  double drain_at_most = 50;   // percent of all nodes; more are drained with --drain-all only
  Demands node, link;
};

// Throws a ConfigError that lists all problems.
AcceptProfile load_accept_profile(const std::filesystem::path& file);

// Replaces {node}, {a} and {b} in the words of a start command, as far as they are given.
std::vector<std::string> filled_in(std::vector<std::string> words,
                                   const std::map<std::string, std::string>& names);

}  // namespace trireme
