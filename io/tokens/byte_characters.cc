#include "io/tokens/byte_characters.h"

#include "io/tokens/unicode.h"

namespace trireme {
namespace {

constexpr int kNoByte = -1;
constexpr std::size_t kMostCharacters = 0x144;  // one more than the largest in the table

constexpr std::array<std::int16_t, kMostCharacters> kBytes = [] {
  std::array<std::int16_t, kMostCharacters> table{};
  table.fill(kNoByte);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    table[kByteCharacters[byte]] = static_cast<std::int16_t>(byte);
  }
  return table;
}();

}  // namespace

std::string to_byte_characters(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    append_utf8(kByteCharacters[static_cast<unsigned char>(byte)], text);
  }
  return text;
}

std::optional<std::string> from_byte_characters(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_character(text, at);
    if (code >= kMostCharacters || kBytes[code] == kNoByte) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kBytes[code]));
  }
  return bytes;
}

}  // namespace trireme
