// What writers and readers of encrypted files have in common (sealed_text.h). Private to this
// folder.
#pragma once

#include <string>
#include <string_view>

#include "src/keys/block_cipher.h"
#include "src/keys/data_key.h"

namespace trireme {

inline constexpr int kSealedVersion = 1;

// fields: the line that begins a section, up to the blank before its MAC.
std::string mac_of_section(const DataKey& key, std::string_view name, std::string_view fields);
BlockCipher cipher_of_section(const DataKey& key, std::string_view name, std::string_view salt);

}  // namespace trireme
