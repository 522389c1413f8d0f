// The nodes that a launch may use: who they are, which are taken, who keeps whose copies. Pure
// functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct NodeSpec {
  std::string name = {};
  std::string group = {};  // what fails together: a chassis, a switch; empty: unknown
  int slots = 0;           // ranks that it is meant for; 0: unsaid
};

// One node a line: `name [slots=N] [group=NAME]`, # starts a comment: a host file of mpirun will
// do. ConfigError that names `origin` and the line.
std::vector<NodeSpec> parse_host_file(std::string_view text, const std::string& origin);
// Whether it may stand in a command line as a host's name.
bool is_host_name(std::string_view name);

// How many of `ready` nodes a relaunch takes: as many as `wanted`, or fewer, down to `least`, that
// fit the run's layout. 0: it can't be.
int choose_count(int ready, int wanted, int least, const std::function<bool(int nodes)>& fits);

// For each node the place of the one that keeps copies of its checkpoints: a rotation, so that each
// keeps the copies of one. In another failure group wherever a rotation allows. -1 where there is
// one node only.
std::vector<int> partners_of(const std::vector<NodeSpec>& nodes);

}  // namespace trireme
