// Compares the fingerprint in a checkpoint with that of this run. Pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Returns one line for each field that differs, sorted by field name: "model.hidden: checkpoint
// 768, run 1024". Nested objects are compared field by field, arrays as a whole.
std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run);

// Same, but ignores the fields named in `allowed` ("model.dropout", or "model" for all below it).
std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run,
                                     const std::vector<std::string>& allowed);

}  // namespace trireme
