// The label in the files of an exported model (docs/access.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/policy/label.h"

namespace trireme {

// Returns the join of the labels in all files of safetensors, GGUF and ONNX in the folder and in
// those in it, or nothing if none has one. order: of the classifications, from the lowest. Files
// that this program could not have written count as unlabelled. Throws PolicyError if the order
// lacks a classification, and DataError for a damaged label.
std::optional<Label> label_of_exported_model(const std::filesystem::path& folder,
                                             const std::vector<std::string>& order);

}  // namespace trireme
