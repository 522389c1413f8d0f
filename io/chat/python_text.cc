#include "io/chat/python_text.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace trireme {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Returns the character of UTF-8 that begins at `at`; one byte if it is broken.
std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && end < at + 4 && continues(text[end])) {
    ++end;
  }
  return text.substr(at, end - at);
}

std::string_view last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && continues(text[at])) {
    --at;
  }
  return text.substr(at);
}

// The characters for which Python's str.isspace() is true.
bool is_space(std::string_view c) {
  if (c.size() == 1) {
    const auto byte = static_cast<unsigned char>(c[0]);
    return (byte >= 9 && byte <= 13) || (byte >= 28 && byte <= 32);
  }
  if (c == "\u0085" || c == "\u00a0" || c == "\u1680" || c == "\u2028" || c == "\u2029" ||
      c == "\u202f" || c == "\u205f" || c == "\u3000") {
    return true;
  }
  return c.size() == 3 && c >= "\u2000" && c <= "\u200a";
}

template <class Drops>
std::string_view without_start(std::string_view text, Drops drops) {
  while (!text.empty()) {
    const std::string_view first = character_at(text, 0);
    if (!drops(first)) {
      break;
    }
    text.remove_prefix(first.size());
  }
  return text;
}

template <class Drops>
std::string_view without_end(std::string_view text, Drops drops) {
  while (!text.empty()) {
    const std::string_view last = last_character(text);
    if (!drops(last)) {
      break;
    }
    text.remove_suffix(last.size());
  }
  return text;
}

void append_utf8(std::string& to, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Reads a number of exactly `digits` hexadecimal digits; negative if there are fewer.
std::int64_t hexadecimal(std::string_view text, std::size_t digits) {
  if (text.size() < digits) {
    return -1;
  }
  std::int64_t value = 0;
  for (const char c : text.substr(0, digits)) {
    const char small = c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c;
    const std::size_t digit = std::string_view("0123456789abcdef").find(small);
    if (digit == std::string_view::npos) {
      return -1;
    }
    value = 16 * value + static_cast<std::int64_t>(digit);
  }
  return value;
}

}  // namespace

std::string_view lstripped(std::string_view text) { return without_start(text, is_space); }
std::string_view rstripped(std::string_view text) { return without_end(text, is_space); }

std::string_view lstripped(std::string_view text, std::string_view characters) {
  return without_start(
      text, [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
}

std::string_view rstripped(std::string_view text, std::string_view characters) {
  return without_end(
      text, [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
}

std::size_t find_text(std::string_view text, std::string_view what) {
  if (what.empty()) {
    return 0;
  }
  const void* found =
      text.empty() ? nullptr : memmem(text.data(), text.size(), what.data(), what.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = lstripped(text); !text.empty(); text = lstripped(text)) {
    std::size_t end = 0;
    while (end < text.size() && !is_space(character_at(text, end))) {
      end += character_at(text, end).size();
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t most) {
  std::vector<std::string_view> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = find_text(text, separator);
    if (at == std::string_view::npos) {
      break;
    }
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::string with_replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (const std::string_view part : split_at(text, from, -1)) {
    if (part.data() != text.data()) {
      result += to;
    }
    result += part;
  }
  return result;
}

std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
    starts.push_back(at);
  }
  starts.push_back(text.size());
  return starts;
}

std::int64_t characters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).size()) {
    ++count;
  }
  return count;
}

std::optional<std::string> unescaped(std::string_view literal) {
  constexpr std::string_view kLetters = "ntr\\'\"abfv\n";
  constexpr std::string_view kValues = "\n\t\r\\'\"\a\b\f\v";
  std::string text;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 == literal.size()) {
      text += literal[i];
      continue;
    }
    const char c = literal[++i];
    if (const std::size_t which = kLetters.find(c); which != std::string_view::npos) {
      text += which < kValues.size() ? kValues.substr(which, 1) : "";  // a line that continues
      continue;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      if (c == 'N' || (c >= '0' && c <= '7')) {
        return std::nullopt;
      }
      text += '\\';
      text += c;
      continue;
    }
    const std::int64_t code = hexadecimal(literal.substr(i + 1), digits);
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return std::nullopt;
    }
    append_utf8(text, static_cast<std::uint32_t>(code));
    i += digits;
  }
  return text;
}

std::string python_digits(double x) {
  if (std::isnan(x)) {
    return "nan";
  }
  if (std::isinf(x)) {
    return x > 0 ? "inf" : "-inf";
  }
  const std::string digits = fmt::format("{}", x);
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

std::string json_escaped(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    if (const std::size_t which = kEscaped.find(c); which != std::string_view::npos) {
      quoted += '\\';
      quoted += kLetters[which];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted;
}

}  // namespace trireme
