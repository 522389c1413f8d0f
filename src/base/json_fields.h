// Reading JSON that may be damaged or hostile: every access says what it expects, and a DataError
// names the field. Who knows what file it is puts its name in front. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/error.h"

namespace trireme {

// Sums of two such numbers can't overflow.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 60;

// Strict: a key that occurs twice in an object and a depth above 32 are refused, too.
nlohmann::json parse_json(std::string_view text);

const nlohmann::json& field(const nlohmann::json& object, const char* name);
const std::string& text_field(const nlohmann::json& object, const char* name);
const nlohmann::json& object_field(const nlohmann::json& object, const char* name);
const nlohmann::json& array_field(const nlohmann::json& object, const char* name);
bool flag_field(const nlohmann::json& object, const char* name);
// A whole number in [least, most].
std::int64_t count_field(const nlohmann::json& object, const char* name, std::int64_t least = 0,
                         std::int64_t most = kMostCount);
std::vector<std::int64_t> counts_field(const nlohmann::json& object, const char* name);

}  // namespace trireme
