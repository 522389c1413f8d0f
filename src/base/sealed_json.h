// Sealed JSON is the form of manifests. Its last field is the SHA-256 of every byte before it, and
// the bytes that follow are fixed, so that any changed byte is detected:
//
//   {
//    "version": 1,
//    ...
//    "last": 0                <- the digest covers every byte up to here
//   ,                            (the comma follows directly)
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
// Seals a text that lacks only its last field and closing brace.
std::string seal_body(std::string body);

// Throws DataError for a version above `version` and for a broken seal. Checks the version first,
// because a newer program may seal in another way.
nlohmann::json unseal_json(std::string_view text, std::int64_t version);

// Returns a number, text or truth value of the outermost object of any text, sealed or not, without
// building the other values. Returns nothing if it is absent, or does not precede the point at
// which the text stops being JSON.
std::optional<nlohmann::json> plain_field(std::string_view text, const char* name);

}  // namespace trireme
