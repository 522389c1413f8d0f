// The fields that the manifests of encrypted checkpoints and datasets have in common. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/keys/block_cipher.h"

namespace trireme {

inline constexpr std::string_view kCipherName = "AES-256-GCM";

// Returns the identity of the data key that the field `encryption` of a manifest names. Throws
// DataError for another cipher.
std::string parse_encryption(const nlohmann::json& object);

// Returns two lower-case hexadecimal digits for each byte.
std::string hex_of_bytes(std::string_view bytes);
// Does the reverse. Throws DataError unless the text consists of such digits, in pairs.
std::string bytes_of_hex(std::string_view text);
// Returns 32 hexadecimal digits for each tag, joined.
std::string join_tags(const std::vector<BlockTag>& tags);
// Does the reverse. Throws DataError if the text is empty or not made of such digits.
std::vector<BlockTag> split_tags(std::string_view text);

}  // namespace trireme
