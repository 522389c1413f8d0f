// Reads facts about a node's hardware and condition from /proc, /sys and the kernel's clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace trireme {

// Returns facts that should be the same at every start, such as "processors", "memory GiB", "link
// eth0" and "link mlx5_0/1". root: the folder that contains proc and sys.
std::map<std::string, std::string> node_facts(const std::filesystem::path& root = "/");

// Returns the error counters of the links since the node was started, such as "link eth0 rx_errors"
// and "link mlx5_0/1 symbol_error".
std::map<std::string, std::int64_t> link_errors(const std::filesystem::path& root = "/");

// Returns complaints about faults that are evident without a baseline, such as uncorrected memory
// errors.
std::vector<std::string> node_troubles(const std::filesystem::path& root = "/");
// Returns whether NTP or PTP keeps the kernel's clock synchronised.
bool clock_is_kept();

}  // namespace trireme
