// A sweep runs every combination of the values of some keys. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// Returns the key=value words of every combination, with the last key varying fastest. axes: one
// per key, such as "optimizer.lr=1e-3,3e-4", where commas within [ ] or { } are part of a value.
// fixed: key=value words that hold for all combinations. Throws ConfigError for any other form, for
// more than `most` combinations, for a value that an axis has twice, also in another spelling such
// as 0.001, and for a key that occurs twice among axes and fixed words.
std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& axes,
                                                   const std::vector<std::string>& fixed,
                                                   std::size_t most);

}  // namespace trireme
