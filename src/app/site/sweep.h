// A sweep runs every combination of the values of some keys. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// Returns the key=value words of every combination, with the last key varying fastest. axes: one
// per key, such as "optimizer.lr=1e-3,3e-4", where commas within [ ] or { } are part of a value.
// Throws ConfigError for any other form and for more than `most` combinations.
std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& axes,
                                                   std::size_t most);

}  // namespace trireme
