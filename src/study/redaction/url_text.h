// Finds the secrets in URLs. Pure functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "src/study/redaction/secret_text.h"

namespace trireme {

// Returns the user and password of the URL whose "://" or, without a scheme, "//" is at `at`. The
// range is empty if the URL has none; nothing if no URL is there.
std::optional<TextRange> login_in_url(std::string_view text, std::size_t at);
// Returns the path of a webhook whose address ends at `at`: whoever knows it can post messages.
std::optional<TextRange> secret_path(std::string_view text, std::size_t at);

}  // namespace trireme
