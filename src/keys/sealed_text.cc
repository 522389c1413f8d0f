#include "src/keys/sealed_text.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "src/base/base64.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/keys/manifest_fields.h"
#include "src/keys/section_line.h"

namespace trireme {
namespace {

constexpr std::size_t kSaltBytes = 16;

std::string random_salt() {
  std::array<unsigned char, kSaltBytes> salt{};
  fill_random(salt.data(), salt.size());
  return hex_of_bytes({reinterpret_cast<const char*>(salt.data()), salt.size()});
}

}  // namespace

std::string digest_of_line(std::string_view last_line) {
  return last_line.empty() ? std::string(64, '0') : sha256_hex(last_line);
}

SectionSealer::SectionSealer(std::shared_ptr<const DataKey> key, std::string name)
    : key_(std::move(key)), name_(std::move(name)) {}

std::string SectionSealer::begin(std::string_view last_line) {
  const std::string salt = random_salt();
  cipher_.emplace(cipher_of_section(*key_, name_, salt));
  records_ = 0;
  const std::string fields = fmt::format("{}{} {} {} {}", kSealedMark, kSealedVersion, key_->id(),
                                         salt, digest_of_line(last_line));
  return fmt::format("{} {}\n", fields, mac_of_section(*key_, name_, fields));
}

std::string SectionSealer::record(std::string_view text, bool is_last) {
  check(cipher_.has_value(), "a section was begun");
  std::string sealed(text.size() + kTagBytes, '\0');
  auto* const bytes = reinterpret_cast<std::byte*>(sealed.data());
  std::memcpy(bytes, text.data(), text.size());
  const BlockTag tag = cipher_->seal({records_, is_last}, bytes, std::ssize(text), bytes);
  ++records_;
  std::memcpy(bytes + text.size(), tag.data(), tag.size());
  return to_base64(sealed) + "\n";
}

std::string SectionSealer::seal(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, static_cast<std::size_t>(kSealedBlockBytes));
    lines += record(part, false);
    text.remove_prefix(part.size());
  }
  return lines;
}

std::string SectionSealer::end() {
  std::string line = record("", true);
  cipher_.reset();
  return line;
}

}  // namespace trireme
