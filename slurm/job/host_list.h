// Parses host lists as Slurm writes them, such as "n[1-3,7],gpu[08-11]x,login". A pure function;
// the text is not trusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Limits the number of hosts in a list; more than any machine has is taken for a mistake.
inline constexpr std::size_t kMostHosts = 1 << 20;

// Returns the hosts in the order written, with leading zeros: "n[08-10]" is n08, n09, n10. If a
// name has several brackets, all combinations are listed, with the last bracket varying fastest.
// Throws a ConfigError that names the position if the text is no host list: for brackets that do
// not match, descending ranges, blanks, control characters or more than kMostHosts hosts.
std::vector<std::string> expand_host_list(std::string_view text);

}  // namespace trireme
