// Base64 (RFC 4648). Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

std::string to_base64(std::string_view bytes);

// Accepts the standard and the URL-safe alphabet, but not both in one text. Throws DataError for
// any other character, for missing padding, and for bits after the last byte that are not zero, so
// that one value has only one spelling in each alphabet.
std::string from_base64(std::string_view text);

}  // namespace trireme
