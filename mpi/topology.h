// Describes the cores that this thread may run on and the hardware of its host, as read by hwloc,
// and where each rank of the world runs. Results depend on the machine and the calling thread's
// affinity only.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trireme {

// Describes the cores that the operating system lets the calling thread run on. Lists are like
// "0-3,8".
struct CoreBinding {
  int cores = 1;  // physical cores
  std::string cpus;
  std::string packages;    // sockets that the cores belong to
  std::string numa_nodes;  // NUMA nodes that these cores belong to
};
CoreBinding current_binding();

// Describes the hardware of the whole host.
struct HostShape {
  int packages = 1;
  int numa_nodes = 1;
  int cores = 1;
  // Names the devices on the PCI bus, such as "mlx5_0 (OpenFabrics, NUMA 1)" or "eth0 (Ethernet)".
  std::vector<std::string> network_devices;
  // Returns, for example, "2 sockets, 4 NUMA nodes, 64 cores; eth0 (Ethernet), mlx5_0 (OpenFabrics,
  // NUMA 1)".
  std::string text() const;
};
HostShape host_shape();

// Returns the number of the NUMA node next to a PCI device, such as "0000:1b:00.0"; nothing if the
// machine has only one, or the device is unknown.
std::optional<int> numa_node_of(const std::string& bus);
// Returns the numbers in a list of CoreBinding: 0, 1, 2, 3 and 8 for "0-3,8".
std::vector<int> numbers_in(const std::string& list);

// Says on which host and cores a rank of the world runs.
struct RankPlace {
  int rank = 0;
  std::string host;
  std::string node;    // the host as Slurm names it (SLURMD_NODENAME); `host` without Slurm
  int local_rank = 0;  // number among the ranks of this host
  int local_size = 1;
  CoreBinding binding;
  // Number of ranks of this host that may run on exactly the same cores, including this one: 1 if
  // each rank has its own cores, local_size if none is bound.
  int sharers = 1;

  // Returns the number of compute threads at which the host's ranks use each core once: this rank's
  // share of its cores, at least 1.
  int threads() const { return binding.cores > sharers ? binding.cores / sharers : 1; }
};

// Fills local_rank, local_size and sharers from the hosts and bindings of all ranks.
void complete_places(std::vector<RankPlace>& places);

}  // namespace trireme
