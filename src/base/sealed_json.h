// Sealed JSON: the form of manifests. The last field is the SHA-256 of every byte before it, and
// the bytes after those are fixed, so that any changed byte is found:
//
//   {
//    "version": 1,
//    ...
//    "last": 0                <- the digest covers every byte up to here
//   ,                            (the comma follows at once)
//    "seal": "sha256:0123..."
//   }
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

std::string seal_json(const nlohmann::ordered_json& object);
// The same for a text that lacks only its last field and closing brace.
std::string seal_body(std::string body);

// DataError for a broken seal and for a version above `version`; the latter first, since a newer
// program may seal otherwise.
nlohmann::json unseal_json(std::string_view text, std::int64_t version);

// A number, text or truth value of the outermost object of any text, sealed or not, read without
// building the others. Nothing if it is not there, or not before the text stops being JSON.
std::optional<nlohmann::json> plain_field(std::string_view text, const char* name);

}  // namespace trireme
