// Sealed JSON: the form of the small files of a dataset. The last field is the SHA-256 of every
// byte before it, and the bytes after those are fixed, so that any changed byte is found:
//
//   {
//    "version": 1,
//    ...
//    "last": 0                <- the digest covers every byte up to here
//   ,                            (the comma follows at once)
//    "seal": "sha256:0123..."
//   }
//
// The parser is strict: no duplicate keys, bounded depth, integers in range. Pure functions;
// private to io/data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace trireme {

std::string seal_json(const nlohmann::ordered_json& object);
// The same for a text that lacks only its last field and closing brace.
std::string seal_body(std::string body);

// `name` is what messages call the file. Throws DataError for a broken seal and for a version above
// `version`; the latter first, since a newer program may seal otherwise.
nlohmann::json unseal_json(std::string_view text, const std::string& name, std::int64_t version);

// Duplicate keys and depths above 32 are refused (DataError).
nlohmann::json parse_strict_json(std::string_view text, const std::string& name);

// A field's value; DataError where it is absent or has another type or an integer outside
// [least, 2^60].
std::int64_t integer_field(const nlohmann::json& object, const char* key, const std::string& name,
                           std::int64_t least = 0);
const std::string& text_field(const nlohmann::json& object, const char* key,
                              const std::string& name);
const nlohmann::json& array_field(const nlohmann::json& object, const char* key,
                                  const std::string& name);

}  // namespace trireme
