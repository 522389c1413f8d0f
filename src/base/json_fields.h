// Reads JSON that may be damaged or hostile. Every access states what it expects and throws
// DataError that names the field; callers that know the file add its name. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/error.h"

namespace trireme {

// This bound keeps sums of two such numbers from overflowing.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 60;

// No reader takes lists and objects that are nested deeper: copying, comparing and printing such a
// value recurse, and a deep one would use up the stack.
inline constexpr int kMostJsonDepth = 32;

// Parses strictly: also refuses duplicate keys in an object and a depth above kMostJsonDepth.
nlohmann::json parse_json(std::string_view text);
// Parses a line of many, where damaged ones are left out: returns a discarded value if it is not
// JSON or is nested deeper than kMostJsonDepth.
nlohmann::json parse_json_line(std::string_view line);

const nlohmann::json& field(const nlohmann::json& object, const char* name);
const std::string& text_field(const nlohmann::json& object, const char* name);
const nlohmann::json& object_field(const nlohmann::json& object, const char* name);
const nlohmann::json& array_field(const nlohmann::json& object, const char* name);
bool flag_field(const nlohmann::json& object, const char* name);
// Returns a whole number in [least, most].
std::int64_t count_field(const nlohmann::json& object, const char* name, std::int64_t least = 0,
                         std::int64_t most = kMostCount);
std::vector<std::int64_t> counts_field(const nlohmann::json& object, const char* name);

}  // namespace trireme
