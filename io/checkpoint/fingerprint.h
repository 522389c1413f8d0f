// Comparing what a checkpoint says of its run with what this run says of itself.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// One line for each field that differs, in the order of the fields' names: "model.hidden:
// checkpoint 768, run 1024". Objects within objects are told apart field by field, arrays as a
// whole.
std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run);

// The same without the fields named in `allowed` ("model.dropout", or "model" for all below it).
std::vector<std::string> differences(const nlohmann::json& checkpoint, const nlohmann::json& run,
                                     const std::vector<std::string>& allowed);

}  // namespace trireme
