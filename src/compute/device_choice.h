// Chooses the device on which a process computes (train.device, --device).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/device/device.h"

namespace trireme {

// Returns "auto", "cpu" and "cuda".
std::vector<std::string> device_words();

// Chooses by one of these words. With auto, it is a CUDA device if there is one, else the CPU.
// local_rank: the process's number among the local_size ranks of its host; each gets a
// CUDA device of its own, or the only one that its launcher lets it see; a run's ranks get theirs
// from assign_devices() instead. Throws ConfigError if there is no CUDA device for the process or,
// also with auto, the device lacks software, and DeviceError if the driver reports a fault.
Device choose_device(std::string_view word, int local_rank = 0, int local_size = 1);

// The device of a rank depends on NUMA nodes, which are empty if unknown.
struct RankNearness {
  std::vector<int> numa_nodes;  // of the rank's cores
};
struct DeviceNearness {
  std::optional<int> numa_node;
};

// Gives each rank of a host a device: ranks that are bound to some of the NUMA nodes, one next to
// their cores if there is one left; the others, the first that is left. All ranks see all devices.
// Ranks share devices only if there are too few of them. Returns a device for each rank; devices:
// at least one. Pure.
std::vector<int> assign_devices(const std::vector<RankNearness>& ranks,
                                const std::vector<DeviceNearness>& devices);

// Returns "cpu" or, for example, "CUDA device 3 (NVIDIA H100 80GB HBM3, GPU-5b2e..., 79.2 GiB)";
// simulated devices are called so.
std::string device_text(Device device);

// Prints on stderr that this process computes on a CUDA device, if it does.
void say_device(Device device);

}  // namespace trireme
