// Byte-level tokenizers write each byte as one printable character: 0x21 to 0x7E, 0xA1 to 0xAC and
// 0xAE to 0xFF as the character of the same number, the other 68 bytes in ascending order as U+0100
// and on (GPT-2's bytes_to_unicode()). Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::array<char16_t, 256> kByteCharacters = [] {
  std::array<char16_t, 256> table{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool same = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    table[byte] = same ? static_cast<char16_t>(byte) : next++;
  }
  return table;
}();

std::string to_byte_characters(std::string_view bytes);
// Returns nothing if the text (valid UTF-8) has a character that stands for no byte.
std::optional<std::string> from_byte_characters(std::string_view text);

}  // namespace trireme
