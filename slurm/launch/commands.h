// The command lines of a launch: how agents, the deputy and the ranks are started, here, over ssh,
// or by Slurm. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "slurm/policy/nodes.h"
#include "slurm/wire/connection.h"

namespace trireme {

enum class Starter { mpirun, srun };
// How a process gets onto a node.
enum class Reach { local, ssh, slurm };

// What does not change during a launch.
struct LaunchSetting {
  std::string program = {};  // this one's path, the same on all nodes
  std::string launch = {};   // the launch's number: hexadecimal digits
  Starter starter = Starter::mpirun;
  Reach reach = Reach::local;
  std::vector<std::string> ssh = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"};
  int ranks_a_node = 1;
  PortRange ports = {};  // where supervisor and agents listen
  int cpus_a_rank = 0;   // that a rank is bound to; 0: as the starter does by itself
  std::vector<std::string> launcher_arguments = {};  // the user's own, for mpirun or srun
  std::vector<std::string> run = {};                 // train CONFIG key=value...
  // More that every rank shall find in its environment; names with TRIREME_.
  std::vector<std::pair<std::string, std::string>> extra = {};
  // Names of variables to hand on to ranks on other hosts.
  std::vector<std::string> handed_on = {};
};

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Command {
  std::vector<std::string> argv = {};
  Environment environment = {};
};

// For a POSIX shell: one word, whatever is in it.
std::string posix_word(const std::string& text);

// `words`: trireme's own arguments, as in "launch", "agent", ...
Command on_node(const LaunchSetting& setting, const std::string& node,
                const std::vector<std::string>& words);
// The ranks, in the order of the nodes.
Command ranks_command(const LaunchSetting& setting, std::int64_t generation,
                      const std::vector<NodeSpec>& nodes);

// Where a rank of a launch is, from what its starter has put into the environment; and the
// variables that the run wants to see (TRIREME_NODE, TRIREME_NODE_DIR, ...). ConfigError outside of
// a launch.
struct RankEnvironment {
  std::string node = {};
  std::string launch = {};
};
RankEnvironment rank_environment(const Environment& environment);

}  // namespace trireme
