#include "io/tokens/text_step.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {

void check_fields(const nlohmann::json& object, std::string_view what,
                  std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, std::string_view(name)) == known.end()) {
      throw DataError(
          fmt::format("{} has the unknown option '{}': it is refused, because ignoring it could "
                      "change the ids",
                      what, name));
    }
  }
}

void refuse_type(std::string_view what, std::string_view type) {
  throw DataError(
      fmt::format("the {} '{}' is not supported (docs/tokenizers.md lists what is)", what, type));
}

bool flag_or(const nlohmann::json& object, const char* name, bool otherwise) {
  return object.contains(name) && !object[name].is_null() ? flag_field(object, name) : otherwise;
}

std::string text_or(const nlohmann::json& object, const char* name, const std::string& otherwise) {
  return object.contains(name) && !object[name].is_null() ? text_field(object, name) : otherwise;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t found = 0; (found = text.find(from, at)) != std::string_view::npos;) {
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return result.append(text.substr(at));
}

std::string text_pattern(const nlohmann::json& object, std::string_view what) {
  const nlohmann::json& pattern = object_field(object, "pattern");
  if (pattern.contains("Regex")) {
    throw DataError(fmt::format("{} uses the regular expression '{}', which is not supported", what,
                                text_field(pattern, "Regex")));
  }
  std::string text = text_field(pattern, "String");
  if (text.empty()) {
    throw DataError(fmt::format("{} has an empty pattern", what));
  }
  return text;
}

}  // namespace trireme
