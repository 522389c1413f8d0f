// Reading JSON that may be damaged or hostile: every access says what it expects, and a DataError
// names the field.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {

// Parses text; DataError with `origin` if it is no JSON.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

const nlohmann::json& field(const nlohmann::json& object, const char* name);
std::string text_field(const nlohmann::json& object, const char* name);
const nlohmann::json& object_field(const nlohmann::json& object, const char* name);
const nlohmann::json& array_field(const nlohmann::json& object, const char* name);
bool flag_field(const nlohmann::json& object, const char* name);
// A whole number in [0, most].
std::int64_t count_value(const nlohmann::json& value, const char* name,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max());
std::int64_t count_field(const nlohmann::json& object, const char* name,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max());
std::vector<std::int64_t> counts_field(const nlohmann::json& object, const char* name);

}  // namespace trireme
