// Finds out whether the files of a tokenizer that come with a model are of any use to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme {

// Returns why the tokenizer in a folder cannot be that of a model with `rows` ids, by the names of
// its files without the folder; "" if it can, or if the folder has none.
std::string tokenizer_fault(const std::filesystem::path& folder, std::int64_t rows);
// Returns the text of an error without the folder's name in front of its files.
std::string without_folder(std::string text, const std::filesystem::path& folder);

}  // namespace trireme
