// Finds the tables of TOML that have a secret's name, such as [db.secrets]. Pure functions; all
// places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trireme {

// Returns the end of the table whose header is the line at `at`, or nothing if that is none or its
// name is no secret's. The tables may be indented.
std::optional<std::size_t> end_of_secret_table(std::string_view text, std::size_t at);

// Returns the place of the value in the line at `at` if its key is in quotes, as in "a b" = 5.
std::optional<std::size_t> value_of_quoted_key(std::string_view text, std::size_t at);

}  // namespace trireme
