#include "src/base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// What a table says about a character besides the value of a digit, which is in the lowest six
// bits.
enum LetterKind : std::uint16_t { kIsNone = 1 << 6, kIsStandard = 1 << 7, kIsUrlSafe = 1 << 8 };

constexpr std::array<std::uint16_t, 256> table_of_digits() {
  std::array<std::uint16_t, 256> table{};
  table.fill(kIsNone);
  for (std::uint16_t i = 0; i < kDigits.size(); ++i) {
    table[static_cast<unsigned char>(kDigits[i])] = i;
  }
  table['+'] = 62 | kIsStandard;
  table['/'] = 63 | kIsStandard;
  table['-'] = 62 | kIsUrlSafe;
  table['_'] = 63 | kIsUrlSafe;
  return table;
}

constexpr auto kTable = table_of_digits();

std::uint32_t entry_of(char c) { return kTable[static_cast<unsigned char>(c)]; }

char byte_of(std::uint32_t bits, int shift) {
  return static_cast<char>(static_cast<unsigned char>(bits >> shift));
}

[[noreturn]] void refuse_character(std::string_view digits) {
  std::size_t at = 0;
  while (at < digits.size() && (entry_of(digits[at]) & kIsNone) == 0) {
    ++at;
  }
  throw DataError(fmt::format("not base64: the character at position {}", at));
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  std::size_t out = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i <= count; ++i) {
      text[out + i] = kDigits[bits >> (18 - 6 * i) & 63U];
    }
    out += 4;
  }
  return text;
}

std::string from_base64(std::string_view text) {
  const std::size_t end = text.find_last_not_of('=') + 1;  // 0 if there are only padding characters
  const std::size_t padding = text.size() - end;
  if (text.size() % 4 != 0 || padding > 2) {
    throw DataError(
        fmt::format("not base64: {} characters, of which {} are padding", text.size(), padding));
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  std::uint32_t seen = 0;
  std::size_t out = 0;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const std::uint32_t entry = i < end ? entry_of(text[i]) : 0;
      seen |= entry;
      bits = bits << 6 | (entry & 63U);
    }
    bytes[out] = byte_of(bits, 16);
    bytes[out + 1] = byte_of(bits, 8);
    bytes[out + 2] = byte_of(bits, 0);
    out += 3;
  }
  if ((seen & kIsNone) != 0) {
    refuse_character(text.substr(0, end));
  }
  if ((seen & kIsStandard) != 0 && (seen & kIsUrlSafe) != 0) {
    throw DataError("not base64: it mixes the standard and the URL-safe alphabet");
  }
  for (std::size_t i = 0; i < padding; ++i) {
    if (bytes.back() != '\0') {
      throw DataError("not base64: bits after the last byte are not zero");
    }
    bytes.pop_back();
  }
  return bytes;
}

}  // namespace trireme
