// What a node is made of and how it stands, as words, read from /proc and /sys and from the
// kernel's clock. Pure functions of those.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace trireme {

// "processors", "memory GiB", "link eth0", "link mlx5_0/1": what should be the same at every start.
// root: where proc and sys are looked for.
std::map<std::string, std::string> node_facts(const std::filesystem::path& root = "/");

// Errors of the links since the node was started: "link eth0 rx_errors", "link mlx5_0/1
// symbol_error".
std::map<std::string, std::int64_t> link_errors(const std::filesystem::path& root = "/");

// What no baseline is needed for: memory errors that could not be corrected. Complaints for people.
std::vector<std::string> node_troubles(const std::filesystem::path& root = "/");
// Whether the kernel's clock is kept right by anybody (NTP, PTP).
bool clock_is_kept();

}  // namespace trireme
