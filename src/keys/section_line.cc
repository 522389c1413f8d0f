#include "src/keys/section_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"

namespace trireme {
namespace {

constexpr std::size_t kMostRecordBytes = static_cast<std::size_t>(kSealedBlockBytes) + kTagBytes;

bool is_digits(std::string_view text, std::size_t count) {
  return text.size() == count &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

SectionHead parse_section_line(std::string_view line) {
  std::string_view rest = line.substr(kSealedMark.size());
  const auto next = [&] {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return word;
  };
  const std::string_view version = next();
  if (version != std::to_string(kSealedVersion)) {
    throw DataError(
        fmt::format("begins a section of version '{}', but this program knows version {}: use a "
                    "newer one, or the line was changed",
                    printable(version.substr(0, 20)), kSealedVersion));
  }
  SectionHead head{{}, next(), next(), next(), rest};
  if (!is_digits(head.key, 32) || !is_digits(head.salt, 32) || !is_digits(head.previous, 64) ||
      !is_digits(head.mac, 64)) {
    throw DataError("the beginning of a section was changed: it does not have its form");
  }
  head.fields = line.substr(0, line.size() - head.mac.size() - 1);
  return head;
}

std::string decode_record(std::string_view line) {
  std::string sealed;
  try {
    sealed = from_base64(line);
    if (sealed.size() >= kTagBytes && sealed.size() <= kMostRecordBytes &&
        line.find_first_of("-_") == std::string_view::npos) {
      return sealed;
    }
  } catch (const DataError&) {
    // It is described below.
  }
  throw DataError(
      "is neither an encrypted record nor the beginning of a section: somebody else wrote it");
}

std::string mac_of_section(const DataKey& key, std::string_view name, std::string_view fields) {
  return key.mac("section", fmt::format("{}\n{}", name, fields));
}

BlockCipher cipher_of_section(const DataKey& key, std::string_view name, std::string_view salt) {
  return {key, fmt::format("{} {}", name, salt)};
}

}  // namespace trireme
