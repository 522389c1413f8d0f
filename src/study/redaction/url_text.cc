#include "src/study/redaction/url_text.h"

#include <algorithm>
#include <array>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestName = 512;    // bytes of a password before its host
constexpr std::size_t kLongestLogin = 4096;  // bytes in which an @ is looked for

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

// Returns the place of the @ behind a user and a password, as in joe:a,b@host, in which commas,
// quotes and the like may stand, although they end other URLs. In "h:80,x@y" they do.
std::optional<std::size_t> end_of_odd_login(std::string_view url) {
  const std::string_view authority = url.substr(0, url.find_first_of(" \t\r\n/?#"));
  const std::size_t colon = authority.find(':');
  const std::size_t at = authority.rfind('@');
  const std::size_t user = authority.find_first_of("\"'<>\\,");
  if (at == authority.npos || at + 1 == authority.size() || colon > std::min(at, user)) {
    return std::nullopt;
  }
  const std::size_t port = authority.find_first_not_of("0123456789", colon + 1);
  const bool is_port =
      port > colon + 1 && std::string_view("\"'<>\\,").find(authority[port]) != authority.npos;
  return is_port ? std::nullopt : std::optional(at);
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
  const std::string_view near = text.substr(begin, kLongestLogin);
  if (const auto end = end_of_odd_login(near)) {
    return TextRange{begin, begin + *end};
  }
  const std::string_view url = near.substr(0, near.find_first_of(" \t\n\"'<>\\,"));
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
  constexpr std::string_view kBot = "api.telegram.org/bot";  // up to the next '/'
  constexpr std::array<std::string_view, 5> kPaths = {"hooks.slack.com/services/", "/api/webhooks/",
                                                      "outlook.office.com/webhook/", "/webhookb2/",
                                                      kBot};
  for (const std::string_view path : kPaths) {
    if (text.substr(at).starts_with(path)) {
      const std::size_t begin = at + path.size();
      return TextRange{begin,
                       first_of(text, path == kBot ? " \t\n\"'<>\\/" : " \t\n\"'<>\\", begin)};
    }
  }
  return std::nullopt;
}

std::optional<TokenUri> token_uri_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kScheme = "pkcs11:";
  if (!text.substr(at).starts_with(kScheme)) {
    return std::nullopt;
  }
  TokenUri uri{first_of(text, " \t\n\"<>\\", at), {}};
  text = text.substr(0, uri.end);
  for (at += kScheme.size(); at < uri.end;) {
    const std::size_t next = first_of(text, ";?&", at);
    const std::size_t equals = first_of(text.substr(0, next), "=", at);
    const std::string_view name = text.substr(at, equals - at);
    const bool secret = equals < next && name != "token" && is_secret_name(name);
    const std::size_t last = secret ? first_of(text, "&", at) : next + 1;
    if (secret) {
      uri.secrets.push_back({equals + 1, last});
    }
    at = std::min(last, uri.end);
  }
  return uri;
}

}  // namespace trireme
