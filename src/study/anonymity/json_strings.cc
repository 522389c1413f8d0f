#include "src/study/anonymity/json_strings.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace trireme {

std::vector<JsonString> strings_of_json(std::string_view json) {
  std::vector<JsonString> strings;
  for (std::size_t at = json.find('"'); at < json.size(); at = json.find('"', at)) {
    const std::size_t begin = at++;
    while (at < json.size() && json[at] != '"') {
      at += json[at] == '\\' ? 2 : 1;
    }
    at = std::min(at + 1, json.size());
    const std::size_t next = json.find_first_not_of(" \t\r\n", at);
    strings.push_back({begin, at, next < json.size() && json[next] == ':'});
  }
  return strings;
}

std::string meaning_of_string(std::string_view string) {
  if (string.find('\\') == std::string_view::npos) {
    return std::string(string.substr(1, string.size() - 2));
  }
  return nlohmann::json::parse(string).get<std::string>();
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace trireme
