#include "src/study/redaction/url_text.h"

#include <algorithm>
#include <array>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestName = 512;  // bytes of a password before its host

// Returns whether a URL without a scheme, such as //jane:secret@host, begins at this place.
bool is_login_without_scheme(std::string_view text, std::size_t at) {
  const bool apart = at == 0 || (text[at - 1] != ':' && text[at - 1] != '/');
  if (!apart || !text.substr(at).starts_with("//")) {
    return false;
  }
  const std::size_t colon = end_of_word(text, at + 2);
  const std::size_t end = first_of(text.substr(0, colon + kLongestName), " \t\r\n\"'<>/@", colon);
  return colon > at + 2 && colon < text.size() && text[colon] == ':' && end > colon + 1 &&
         end < text.size() && text[end] == '@';
}

}  // namespace

// A password may hold any character that should have been encoded, so the last @ counts. A port
// does not begin a password.
std::optional<TextRange> login_in_url(std::string_view text, std::size_t at) {
  const bool scheme = text.substr(at).starts_with("://");
  if (!scheme && !is_login_without_scheme(text, at)) {
    return std::nullopt;
  }
  const std::size_t begin = at + (scheme ? 3 : 2);
  const std::string_view url = text.substr(begin, first_of(text, " \t\n\"'<>\\,", begin) - begin);
  const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  std::size_t end = authority.rfind('@');
  const std::size_t colon = authority.find(':');
  if (end == std::string_view::npos && colon != std::string_view::npos &&
      authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) {
    end = url.rfind('@');
  }
  return TextRange{begin, end == std::string_view::npos ? begin : begin + end};
}

std::optional<TextRange> secret_path(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 4> kPaths = {"hooks.slack.com/services/", "/api/webhooks/",
                                                      "outlook.office.com/webhook/", "/webhookb2/"};
  for (const std::string_view path : kPaths) {
    if (text.substr(at).starts_with(path)) {
      const std::size_t begin = at + path.size();
      return TextRange{begin, first_of(text, " \t\n\"'<>\\", begin)};
    }
  }
  return std::nullopt;
}

}  // namespace trireme
