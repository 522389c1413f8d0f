// Finds the secrets in URLs. Pure functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "src/study/redaction/secret_text.h"

namespace trireme {

// Returns the user and password of the URL whose "://" or, without a scheme, "//" is at `at`. The
// range is empty if the URL has none; nothing if no URL is there.
std::optional<TextRange> login_in_url(std::string_view text, std::size_t at);
// Returns the path of a webhook whose address ends at `at`: whoever knows it can post messages.
std::optional<TextRange> secret_path(std::string_view text, std::size_t at);

// The attributes of a PKCS#11 URI (RFC 7512) that are secrets; "token" is a label there.
struct TokenUri {
  std::size_t end = 0;
  std::vector<TextRange> secrets;
};
// Returns the PKCS#11 URI that begins at `at`, if there is one.
std::optional<TokenUri> token_uri_at(std::string_view text, std::size_t at);

}  // namespace trireme
