// A sweep: every combination of the values of some keys. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// From "optimizer.lr=1e-3,3e-4" and the like, one a key: the key=value of each combination, the
// last key fastest. Commas within [ ] or { } belong to a value. ConfigError for what is no
// KEY=V1,V2,... and for more than `most` combinations.
std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& axes,
                                                   std::size_t most);

}  // namespace trireme
