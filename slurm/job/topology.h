// Finds out which nodes of a Slurm cluster share a switch, and therefore tend to fail together.
// parse_topology() is a pure function whose text is not trusted.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trireme {

// Parses the output of `scontrol show topology` and returns each node's leaf switch or block. The
// result is empty if the site describes no topology or the text is something else.
//
//   SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
//   SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]
//   BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
std::map<std::string, std::string> parse_topology(std::string_view text);

// Returns the topology of the cluster that this process runs in; empty if Slurm does not answer.
std::map<std::string, std::string> slurm_topology();

}  // namespace trireme
