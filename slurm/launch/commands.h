// Makes the command lines with which a launch starts agents, the deputy and the ranks: on this
// machine, over ssh, or through Slurm. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "slurm/policy/nodes.h"
#include "slurm/wire/connection.h"

namespace trireme {

enum class Starter { mpirun, srun };
// Says how to start a process on a node.
enum class Reach { local, ssh, slurm };

// Holds the settings that stay the same during a launch.
struct LaunchSetting {
  std::string program = {};  // path of this program, the same on all nodes
  std::string launch = {};   // the launch id, hexadecimal digits
  Starter starter = Starter::mpirun;
  Reach reach = Reach::local;
  std::vector<std::string> ssh = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"};
  int ranks_per_node = 1;
  PortRange ports = {};   // on which the supervisor and the agents listen
  TlsSetting tls = {};    // of the connections of the launch
  int cpus_per_rank = 0;  // cores that a rank is bound to; 0 for the starter's default
  std::vector<std::string> launcher_arguments = {};  // the user's own arguments for mpirun or srun
  std::vector<std::string> run = {};                 // the words "train CONFIG key=value..."
  // Adds variables to the environment of every rank; their names begin with TRIREME_.
  std::vector<std::pair<std::string, std::string>> extra = {};
  // Names the variables to pass on to ranks on other hosts.
  std::vector<std::string> handed_on = {};
};

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Command {
  std::vector<std::string> argv = {};
  Environment environment = {};
};

// Quotes any text as one word for a POSIX shell.
std::string posix_word(const std::string& text);

// Returns the command that runs trireme with the arguments `words` ("launch", "agent", ...) on a
// node.
Command on_node(const LaunchSetting& setting, const std::string& node,
                const std::vector<std::string>& words);
// Returns the command that starts the ranks, in the order of the nodes.
Command ranks_command(const LaunchSetting& setting, std::int64_t attempt,
                      const std::vector<NodeSpec>& nodes);

// A RankEnvironment holds the node and launch of a rank, derived from the environment that its
// starter has set. Throws ConfigError outside a launch.
struct RankEnvironment {
  std::string node = {};
  std::string launch = {};
};
RankEnvironment rank_environment(const Environment& environment);

}  // namespace trireme
