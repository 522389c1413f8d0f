// Names this node as Slurm does.
#pragma once

#include <string>

namespace trireme {

// Returns the name by which Slurm knows this machine (SLURMD_NODENAME), which its commands and the
// profile of an acceptance use. Outside a job, or if the variable is no name, returns host_name().
std::string node_name();

}  // namespace trireme
