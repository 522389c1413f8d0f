// The label of a dataset in a file of its own. `trireme data export` writes it beside the tokens,
// because the formats of other programs have no place for it, and `trireme data convert` reads it:
//
//   NAME.idx.label.json, NAME.npy.label.json
//   {"label": {"classification": "secret", ...}}      src/policy/label.h
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/policy/label.h"

namespace trireme {

// tokens: a file that `data convert` takes: an array, or the index of tokens.
std::filesystem::path label_file_of(const std::filesystem::path& tokens);
std::string label_file_text(const Label& label);
// Returns the label beside a file, or nothing if there is no such file. Throws DataError that names
// it if it is damaged, and IoError.
std::optional<Label> label_beside(const std::filesystem::path& tokens);

}  // namespace trireme
