// Removes secrets from texts that leave the site. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

struct Redacted {
  std::string text;
  std::int64_t secrets = 0;  // how many were replaced by kRedacted
};

inline constexpr std::string_view kRedacted = "REDACTED";

// Replaces: values of names such as password, api_key or hf_token in YAML, JSON, shell variables
// and options; keys of the forms that common services use; "Bearer" tokens; user and password in
// URLs; private keys in PEM. What has no name and no known form is not found.
Redacted redact(std::string_view text);

}  // namespace trireme
