// Which nodes of a Slurm cluster hang on the same switch, and so fail together. Pure functions; the
// text may be anything.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trireme {

// From what `scontrol show topology` prints: each node's leaf switch, or its block. Empty where the
// site has described no topology, and for what is no such text.
//
//   SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
//   SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]
//   BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
std::map<std::string, std::string> parse_topology(std::string_view text);

// The same of the cluster that this process is part of; empty where it does not answer.
std::map<std::string, std::string> slurm_topology();

}  // namespace trireme
