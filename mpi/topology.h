// Topology: what this process may run on and how its host is built, read with hwloc; and where
// every rank of the world lives. Functions of the machine and of the calling thread's affinity.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// What the operating system lets the calling thread run on. Lists are like "0-3,8".
struct CoreBinding {
  int cores = 1;  // physical ones
  std::string cpus;
  std::string packages;    // sockets that the cores belong to
  std::string numa_nodes;  // whose memory is near
};
CoreBinding current_binding();

// The host as a whole.
struct HostShape {
  int packages = 1;
  int numa_nodes = 1;
  int cores = 1;
  // "mlx5_0 (OpenFabrics, NUMA 1)", "eth0 (Ethernet)"; devices on the PCI bus only.
  std::vector<std::string> network_devices;
  // "2 sockets, 4 NUMA nodes, 64 cores; eth0 (Ethernet), mlx5_0 (OpenFabrics, NUMA 1)"
  std::string text() const;
};
HostShape host_shape();

// Where a rank of the world lives.
struct RankPlace {
  int rank = 0;
  std::string host;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  CoreBinding binding;
  // Ranks of this host that may run on exactly the same cores, this one included: 1 where each has
  // its own, local_size where nobody was bound.
  int sharers = 1;

  // Compute threads that use the rank's cores once: its share of them, at least one.
  int threads() const { return binding.cores > sharers ? binding.cores / sharers : 1; }
};

// Fills local_rank, local_size and sharers from the hosts and bindings of all ranks.
void complete_places(std::vector<RankPlace>& places);

}  // namespace trireme
