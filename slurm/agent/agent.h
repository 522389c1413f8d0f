// The agent: one process a node of a launch, without MPI. It owns the node's folder, watches the
// ranks, ends old ones, keeps checkpoints and their copies, and says all that to the supervisor
// every second. When the supervisor is gone for good it ends the ranks and removes what it made.
#pragma once

#include <string>
#include <vector>

#include "slurm/wire/connection.h"

namespace trireme {

struct AgentPlan {
  std::string launch = {};                  // its number
  std::string node = {};                    // as the launch calls it
  std::vector<std::string> addresses = {};  // of the supervisor
  int port = 0;
  PortRange ports = {};  // where it takes copies of checkpoints
  std::string secret = {};
  std::string health = {};      // a command of the shell, 0: fit; empty: none
  double health_seconds = 50;   // at most; the supervisor waits 60 for the agent
  double connect_seconds = 20;  // until the supervisor has answered
  double silence_seconds = 10;  // of the supervisor, until it counts as gone
};

// Until it is told to end, or the supervisor is gone. Returns the exit code.
int run_agent(const AgentPlan& plan);

}  // namespace trireme
