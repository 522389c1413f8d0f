#include "src/base/base64.h"

#include <cstdint>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Returns the value of a digit, or 64 if it is none.
std::uint32_t value_of(char c) {
  const std::size_t at = kDigits.find(c == '-' ? '+' : c == '_' ? '/' : c);
  return at == std::string_view::npos || c == '\0' ? 64 : static_cast<std::uint32_t>(at);
}

char byte_of(std::uint32_t bits, int shift) {
  return static_cast<char>(static_cast<unsigned char>(bits >> shift));
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
    }
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
  if (text.find_first_of("+/") != std::string_view::npos &&
      text.find_first_of("-_") != std::string_view::npos) {
    throw DataError("not base64: it mixes the standard and the URL-safe alphabet");
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::uint32_t value = at < end ? value_of(text[at]) : 0;
    if (value > 63) {
      throw DataError(fmt::format("not base64: the character at position {}", at));
    }
    bits = bits << 6 | value;
    if (at % 4 == 3) {
      bytes += {byte_of(bits, 16), byte_of(bits, 8), byte_of(bits, 0)};
      bits = 0;
    }
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
