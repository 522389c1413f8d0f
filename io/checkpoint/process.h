// Who this process is, and whether another one on this host still lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trireme {

// Changes with every boot of the host; empty where the system tells none.
std::string current_boot_id();
// Clock ticks from boot to the start of the process; nothing if there is no such process.
std::optional<std::int64_t> process_start_time(std::int64_t pid);

}  // namespace trireme
