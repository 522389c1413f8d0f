// The agent is the one process of a launch on each node; it does not use MPI. It owns the node
// folder, watches the ranks, ends those of old attempts, keeps checkpoints in memory and their
// copies, and reports to the supervisor every second. When the supervisor is gone for good, the
// agent ends the ranks and removes what it has made.
#pragma once

#include <string>
#include <vector>

#include "slurm/wire/connection.h"

namespace trireme {

struct AgentPlan {
  std::string launch = {};                  // the id of the launch
  std::string node = {};                    // this node's name in the launch
  std::vector<std::string> addresses = {};  // of the supervisor's host
  int port = 0;
  PortRange ports = {};  // on which the agent accepts copies of checkpoints
  LaunchSecret secret = {};
  std::string health = {};      // a shell command that exits with 0 on a fit node; may be empty
  double health_seconds = 50;   // limit for `health`; the supervisor waits 60 s for the agent
  double connect_seconds = 20;  // how long to try to reach the supervisor
  double silence_seconds = 10;  // the supervisor counts as gone after this time without a message
};

// Runs until the supervisor ends the agent or is gone. Returns the exit code.
int run_agent(const AgentPlan& plan);

}  // namespace trireme
