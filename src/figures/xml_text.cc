#include "src/figures/xml_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

// XML carries neither bytes that are not UTF-8, nor most control characters, nor U+FFFE and U+FFFF.
std::string carried(std::string_view text) {
  using Json = nlohmann::json;
  auto out = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
                 .get<std::string>();
  for (const std::string_view no_character : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = 0; (at = out.find(no_character, at)) != std::string::npos;) {
      out.replace(at, no_character.size(), "\xEF\xBF\xBD");
    }
  }
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return out;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : carried(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace trireme
