// Removes secrets from JSON, which stays valid. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// Returns the place behind the value of JSON that begins at `at`, which must be a '{', '[' or '"',
// or nothing if the text there is no valid JSON. examined: raised by the bytes that were read.
std::optional<std::size_t> end_of_json(std::string_view text, std::size_t at,
                                       std::size_t& examined);
// Appends the JSON to `out`; each secret becomes the text "REDACTED". Returns how many there were.
std::int64_t redact_json(std::string_view json, std::string& out);

}  // namespace trireme
