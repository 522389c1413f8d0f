// Identifies this process, and finds out whether another process of this host is alive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trireme {

// Returns an id that changes with every boot of the host, or "" if the system has none.
std::string current_boot_id();
// Returns when the process started, in clock ticks since boot, or nothing if there is no such
// process.
std::optional<std::int64_t> process_start_time(std::int64_t pid);

}  // namespace trireme
