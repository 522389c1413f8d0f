// XIDs are the numbers under which NVIDIA's driver reports errors of a GPU, to programs and in the
// kernel's log. Meanings: NVIDIA, "XID Errors". Pure functions, and one that reads the log.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Returns, for example, "XID 79 (the GPU has fallen off the bus)".
std::string xid_text(int xid);
// Returns whether the number stands for broken hardware, and not for an error of a program.
bool is_hardware_xid(int xid);

struct LoggedXid {
  std::string bus;  // PCI address as in GpuState::bus
  int xid = 0;
};
// Returns the XIDs in the text of a kernel log: lines such as
// "NVRM: Xid (PCI:0000:1b:00): 79, pid=..., GPU has fallen off the bus."
std::vector<LoggedXid> parse_xids(std::string_view log);
// Returns the XIDs since the node was started. log: /dev/kmsg, or an ordinary file. Returns nothing
// if this process may not read the log; `why`, unless null, then receives the reason.
std::vector<LoggedXid> logged_xids(const std::filesystem::path& log, std::string* why = nullptr);

}  // namespace trireme
