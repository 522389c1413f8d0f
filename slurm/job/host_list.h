// Host lists as Slurm writes them: "n[1-3,7],gpu[08-11]x,login". Pure functions; the text may be
// anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// More hosts than any machine has are a mistake, not a list.
inline constexpr std::size_t kMostHosts = 1 << 20;

// In the order written, leading zeros kept: "n[08-10]" is n08, n09, n10. Several brackets in a name
// are all combined, the last one fastest. ConfigError that names the place for what is no host
// list: brackets that do not match, ranges that fall, blanks, control characters, more than
// kMostHosts.
std::vector<std::string> expand_host_list(std::string_view text);

}  // namespace trireme
