// What the parts of a tokenizer have in common: they are read from objects of tokenizer.json, each
// with a field "type". Every field that a part does not know is refused by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Throws DataError that names the first field of `object` that is not in `known`.
void check_fields(const nlohmann::json& object, std::string_view what,
                  std::initializer_list<std::string_view> known);
// Throws DataError: `what` ("normalizer") has the unknown type `type`.
[[noreturn]] void refuse_type(std::string_view what, std::string_view type);
// Returns a field that may be missing or null.
bool flag_or(const nlohmann::json& object, const char* name, bool otherwise);
std::string text_or(const nlohmann::json& object, const char* name, const std::string& otherwise);

// Replaces every occurrence of `from`, which is not empty.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);
// Returns the String of {"String": ...}. Throws DataError for another pattern.
std::string text_pattern(const nlohmann::json& object, std::string_view what);

}  // namespace trireme
