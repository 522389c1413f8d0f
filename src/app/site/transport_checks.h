// Checks for `trireme doctor` whether a host can do what the security keys demand.
#pragma once

#include <string>
#include <vector>

#include "mpi/topology.h"
#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Looks at the interfaces of this host, at the variables that choose transports, and at what this
// process has open. between_hosts: whether the run has ranks on several hosts.
std::vector<Finding> check_transport(const SecurityConfig& config, const std::string& host,
                                     bool between_hosts);

// Checks whether the kernel of this host can filter system calls, if security.seccomp asks for it.
std::vector<Finding> check_seccomp(const SecurityConfig& config, const std::string& host);

// Checks whether a process on this host can keep its memory out of swap, if security.lock_memory
// asks for it.
std::vector<Finding> check_memory_lock(const SecurityConfig& config, const std::string& host);

// Returns whether the ranks are on more than one host.
bool spans_hosts(const std::vector<RankPlace>& places);

}  // namespace trireme
