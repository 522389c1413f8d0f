// Classes of characters, UTF-8 and normalization, after Unicode 16.0 (unicode_tables.inc). Pure
// functions, safe to call from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace trireme {

// Bits that character_class() returns. The comments give the general categories.
enum CharacterClass : std::uint8_t {
  kLetter = 1,        // L
  kNumber = 2,        // N
  kSpace = 4,         // the property White_Space
  kUpper = 8,         // Lu, Lt, Lm, Lo, M
  kLower = 16,        // Ll, Lm, Lo, M
  kPunctuation = 32,  // P, and the ASCII symbols
  kWord = 64,         // \w of regular expressions: Alphabetic, M, Nd, Pc, Join_Control
  kCombining = 128,   // M
};

// The classes of ASCII, by these rules; a test compares them with the tables.
constexpr std::uint8_t ascii_class(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  if (within('A', 'Z')) {
    return kLetter | kUpper | kWord;
  }
  if (within('a', 'z')) {
    return kLetter | kLower | kWord;
  }
  if (within('0', '9')) {
    return kNumber | kWord;
  }
  if (code == ' ' || within('\t', '\r')) {
    return kSpace;
  }
  if (code < ' ' || code == 0x7F) {
    return 0;
  }
  return code == '_' ? kPunctuation | kWord : kPunctuation;
}

inline constexpr std::array<std::uint8_t, 0x80> kAsciiClasses = [] {
  std::array<std::uint8_t, 0x80> classes{};
  for (char32_t code = 0; code < 0x80; ++code) {
    classes[code] = ascii_class(code);
  }
  return classes;
}();

std::uint8_t class_in_tables(char32_t code);

inline std::uint8_t character_class(char32_t code) {
  return code < 0x80 ? kAsciiClasses[code] : class_in_tables(code);
}

// Decodes the character that starts at byte `at` of valid UTF-8, and moves `at` behind it.
inline char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  if (first < 0xE0) {
    at += 2;
    return (first & 0x1F) << 6 | (byte(at - 1) & 0x3F);
  }
  if (first < 0xF0) {
    at += 3;
    return (first & 0x0F) << 12 | (byte(at - 2) & 0x3F) << 6 | (byte(at - 1) & 0x3F);
  }
  at += 4;
  return (first & 0x07) << 18 | (byte(at - 3) & 0x3F) << 12 | (byte(at - 2) & 0x3F) << 6 |
         (byte(at - 1) & 0x3F);
}

void append_utf8(char32_t code, std::string& text);

bool is_utf8(std::string_view text);
// Replaces each maximal part of an ill-formed sequence by U+FFFD, as chapter 3.9 of the Unicode
// standard recommends and Python's errors="replace" does.
std::string with_replacements(std::string_view text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// text: valid UTF-8. Implements Unicode Standard Annex 15.
std::string normalized(std::string_view text, NormalForm form);

}  // namespace trireme
