#include "src/base/printable.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace trireme {
namespace {

// A UTF-8 character; `bytes` is 0 if the text does not start with one.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

// Returns the length of the character that starts with this byte, or 0 if no character does.
std::size_t bytes_of_character(unsigned char lead) {
  return lead < 0x80   ? 1
         : lead < 0xC2 ? 0
         : lead < 0xE0 ? 2
         : lead < 0xF0 ? 3
         : lead < 0xF5 ? 4
                       : 0;
}

// Returns how many bytes at the end of `text` start a character that is not complete.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t count = 1; count <= std::min<std::size_t>(3, text.size()); ++count) {
    const auto byte = static_cast<unsigned char>(text[text.size() - count]);
    if ((byte & 0xC0U) != 0x80U) {
      return bytes_of_character(byte) > count ? count : 0;
    }
  }
  return 0;
}

// Returns the first character of `text`, which must not be empty (RFC 3629).
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t bytes = bytes_of_character(lead);
  if (bytes == 0 || bytes > text.size()) {
    return {};
  }
  std::uint32_t code = bytes == 1 ? lead : lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return {};
    }
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const std::uint32_t least = bytes == 3 ? 0x800 : bytes == 4 ? 0x10000 : 0;
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least || is_surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

// Returns whether a character separates lines, or reorders or hides text ("Trojan Source").
bool misleads(std::uint32_t code) {
  return code == 0x061C || code == 0xFEFF || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069) ||
         (code >= 0xE0000 && code <= 0xE007F);
}

std::string escaped(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x80      ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
  }
}

std::string shown(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    const std::string_view raw = text.substr(0, bytes);
    if (character.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if ((is_control(character.code) || misleads(character.code)) &&
               kept.find(raw) == std::string_view::npos) {
      out += escaped(character.code);
    } else {
      out += raw;
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, ""); }

std::string printable_lines(std::string_view text) { return shown(text, "\n\t"); }

std::string PrintableStream::add(std::string_view piece) {
  held_ += piece;
  const std::size_t whole = held_.size() - unfinished_bytes(held_);
  std::string text = printable_lines(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  return text;
}

std::string PrintableStream::rest() { return printable_lines(std::exchange(held_, {})); }

std::string joined_lines(std::string_view text) {
  std::string line;
  bool at_start = false;
  for (const char c : text) {
    at_start = c == '\n' || (at_start && c == ' ');
    if (c == '\n') {
      line += line.ends_with(':') ? " " : "; ";
    } else if (!at_start) {
      line += c;
    }
  }
  return line;
}

}  // namespace trireme
