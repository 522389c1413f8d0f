// The lines of encrypted files, as writers and readers use them (sealed_text.h). Private to this
// folder.
#pragma once

#include <string>
#include <string_view>

#include "src/keys/block_cipher.h"
#include "src/keys/data_key.h"

namespace trireme {

inline constexpr int kSealedVersion = 1;

// The fields of a line that begins a section.
struct SectionHead {
  std::string_view fields;  // up to the blank before the MAC
  std::string_view key, salt, previous, mac;
};

// These throw DataError, which does not name the place of the line, if it does not have its form.
SectionHead parse_section_line(std::string_view line);
// Returns the encrypted bytes of a record and its tag.
std::string decode_record(std::string_view line);
// Returns whether such a record ends its section.
inline bool ends_section(std::string_view sealed) { return sealed.size() == kTagBytes; }

// fields: the line that begins a section, up to the blank before its MAC.
std::string mac_of_section(const DataKey& key, std::string_view name, std::string_view fields);
BlockCipher cipher_of_section(const DataKey& key, std::string_view name, std::string_view salt);

}  // namespace trireme
