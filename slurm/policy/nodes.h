// Handles the nodes that a launch may use: parses their list, chooses among them and pairs them as
// partners. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct NodeSpec {
  std::string name = {};
  std::string group = {};  // failure group, such as a chassis or switch; empty if unknown
  int slots = 0;           // number of ranks that the node is meant for; 0 if unspecified
};

// Parses a host file, in which each line is `name [slots=N] [group=NAME]` and # starts a comment.
// Host files of mpirun are valid. Throws a ConfigError that names `origin` and the line.
std::vector<NodeSpec> parse_host_file(std::string_view text, const std::string& origin);
// Returns whether a name is safe to use as a host name in a command line.
bool is_host_name(std::string_view name);

// Returns how many of `ready` nodes a relaunch uses: `wanted` or fewer, down to `least`, such that
// the run's layout fits. Returns 0 if that is impossible.
int choose_count(int ready, int wanted, int least, const std::function<bool(int nodes)>& fits);

// Returns for each node the index of its partner: a rotation, so that each node keeps the copies of
// one other. Partners are in different failure groups where a rotation allows. With a single node,
// the result is -1.
std::vector<int> partners_of(const std::vector<NodeSpec>& nodes);

}  // namespace trireme
