#include "src/keys/manifest_fields.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {

std::string parse_encryption(const nlohmann::json& object) {
  const nlohmann::json& encryption = object_field(object, "encryption");
  const std::string& cipher = text_field(encryption, "cipher");
  if (cipher != kCipherName) {
    throw DataError(fmt::format("unknown cipher '{}': expected {}", cipher, kCipherName));
  }
  const std::string& data_key = text_field(encryption, "data_key");
  if (data_key.size() != 32) {
    throw DataError("the identity of the data key does not have 32 digits");
  }
  return data_key;
}

std::string hex_of_bytes(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string bytes_of_hex(std::string_view text) {
  const auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = value(text[i]);
    const int low = i + 1 < text.size() ? value(text[i + 1]) : -1;
    if (high < 0 || low < 0) {
      throw DataError("it is not made of pairs of hexadecimal digits");
    }
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string join_tags(const std::vector<BlockTag>& tags) {
  std::string text;
  for (const BlockTag& tag : tags) {
    text += hex_of_bytes({reinterpret_cast<const char*>(tag.data()), tag.size()});
  }
  return text;
}

std::vector<BlockTag> split_tags(std::string_view text) {
  if (text.empty() || text.size() % (2 * kTagBytes) != 0) {
    throw DataError("the length of `tags` is no multiple of 32 digits");
  }
  std::string bytes;
  try {
    bytes = bytes_of_hex(text);
  } catch (const DataError&) {
    throw DataError("`tags` has a character that is no hexadecimal digit");
  }
  std::vector<BlockTag> tags(bytes.size() / kTagBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    tags[i / kTagBytes][i % kTagBytes] = static_cast<unsigned char>(bytes[i]);
  }
  return tags;
}

}  // namespace trireme
