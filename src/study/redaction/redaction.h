// Removes secrets from texts that leave the site. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

struct Redacted {
  std::string text;
  std::int64_t secrets = 0;  // how many were replaced by kRedacted
};

inline constexpr std::string_view kRedacted = "REDACTED";

// How texts are called that an archive takes.
inline constexpr std::array<std::string_view, 12> kTextSuffixes = {
    ".yaml", ".yml", ".json", ".jsonl", ".log",    ".out",
    ".err",  ".txt", ".csv",  ".svg",   ".sbatch", ".job"};

// Replaces: values of names such as password, api_key or hf_token in YAML, JSON, shell variables
// and options; keys of the forms that common services use; "Bearer" tokens; user and password in
// URLs; private keys in PEM. What has no name and no known form is not found.
Redacted redact(std::string_view text);
// Does the same with the value of a name, which may itself make it a secret.
Redacted redact_value(std::string_view name, std::string_view value);
// Removes secrets from each part of a path by itself, so that folders and suffixes stay.
std::string redact_path(std::string_view path);

}  // namespace trireme
