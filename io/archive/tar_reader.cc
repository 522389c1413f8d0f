#include "io/archive/tar_reader.h"

#include <algorithm>
#include <charconv>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kTarBlock = 512;
constexpr std::int64_t kMostExtension = std::int64_t{1} << 20;
constexpr std::int64_t kMostMember = std::int64_t{1} << 62;
constexpr std::string_view kPosixMagic{"ustar\0", 6};

bool is_all_zeros(std::string_view block) {
  return block.find_first_not_of('\0') == std::string_view::npos;
}

std::int64_t checksum_of(std::string_view header) {
  constexpr std::size_t kField = 148;
  constexpr std::size_t kFieldBytes = 8;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    sum += i >= kField && i < kField + kFieldBytes ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string_view until_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

}  // namespace

void TarReader::fail(const std::string& why) const {
  throw DataError(fmt::format("{}: at byte {} of the archive: {}", name_, position_, why));
}

std::int64_t TarReader::read(char* to, std::int64_t bytes) {
  const std::int64_t wanted = std::min(bytes, left_);
  if (wanted == 0) {
    return 0;
  }
  const std::int64_t got = from_.read(to, wanted);
  position_ += got;
  left_ -= got;
  if (got == 0) {
    fail(fmt::format("the archive is cut off, {} bytes before the end of a member", left_));
  }
  return got;
}

std::int64_t TarReader::skip(std::int64_t bytes) {
  const std::int64_t wanted = std::min(bytes, left_);
  const std::int64_t got = from_.skip(wanted);
  position_ += got;
  left_ -= got;
  if (got != wanted) {
    fail(fmt::format("the archive is cut off, {} bytes before the end of a member", left_));
  }
  return got;
}

void TarReader::end_member() {
  skip(left_);
  const std::int64_t got = from_.skip(padding_);
  position_ += got;
  if (got != padding_) {
    fail("the archive is cut off behind a member");
  }
  padding_ = 0;
}

// Reads the next header that is not one of zeros. Returns false at the end of the archive.
bool TarReader::next_header() {
  bool has_ended = false;
  for (;;) {
    const std::int64_t got = read_fully(from_, header_.data(), kTarBlock);
    if (got == 0 && has_ended) {
      return false;
    }
    if (got != kTarBlock) {
      fail(got == 0 ? "the archive is cut off: it lacks the blocks of zeros that end it"
                    : "the archive is cut off within a header");
    }
    if (!is_all_zeros(header_)) {
      break;
    }
    position_ += kTarBlock;
    has_ended = true;
  }
  if (number(148, 8) != checksum_of(header_)) {
    fail(
        "the checksum of a header is wrong: the archive is damaged, or is not one of tar; if it is "
        "compressed, its name must end in .tar.gz or .tar.zst");
  }
  return true;
}

std::string_view TarReader::field(std::size_t at, std::size_t bytes) const {
  return until_nul(std::string_view(header_).substr(at, bytes));
}

// Returns a number that is written in octal digits, or, for large sizes, in base 256; nothing if
// the field is not one.
std::optional<std::int64_t> TarReader::number(std::size_t at, std::size_t bytes) const {
  const std::string_view raw = std::string_view(header_).substr(at, bytes);
  std::int64_t value = 0;
  if ((static_cast<unsigned char>(raw[0]) & 0x80U) != 0) {
    value = static_cast<unsigned char>(raw[0]) & 0x7FU;
    for (const char c : raw.substr(1)) {
      if (value >= kMostMember >> 8) {
        return std::nullopt;
      }
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::string_view text = until_nul(raw);
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view digits = text.substr(begin, end - begin);
  const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (!digits.empty() &&
      (code != std::errc() || stop != digits.data() + digits.size() || value < 0)) {
    return std::nullopt;
  }
  return value;
}

std::string TarReader::header_name() const {
  const std::string_view prefix =
      std::string_view(header_).substr(257, 6) == kPosixMagic ? field(345, 155) : "";
  return fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", field(0, 100));
}

// records: "LENGTH KEY=VALUE\n" one after another; LENGTH counts the whole record.
void TarReader::read_pax(std::string_view records, bool is_global, Extension& extension) const {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [stop, code] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(stop - records.data());
    if (code != std::errc() || length > records.size() || length < digits + 2 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      fail("an extended header (pax) is damaged");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      fail("an extended header (pax) is damaged");
    }
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) {
      fail("the archive has sparse files: write it again without tar's option --sparse");
    }
    if (is_global && (key == "path" || key == "size")) {
      fail("a global extended header (pax) gives all members one name or size");
    }
    if (key == "path") {
      if (value.find('\0') != std::string_view::npos) {
        fail(
            "a name in an extended header (pax) has a zero byte: the archive is damaged, or made "
            "to deceive; write it again with tar");
      }
      extension.name = value;
    } else if (key == "size") {
      std::int64_t bytes = 0;
      const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (wrong != std::errc() || end != value.data() + value.size() || bytes < 0 ||
          bytes > kMostMember) {
        fail("the size in an extended header (pax) is not a number");
      }
      extension.bytes = bytes;
    }
  }
}

void TarReader::read_extension(char type, std::int64_t bytes, Extension& extension) {
  if (bytes > kMostExtension) {
    fail(fmt::format("an extended header claims {} bytes, and at most {} are read", bytes,
                     kMostExtension));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (read_fully(*this, text.data(), bytes) != bytes) {
    fail("the archive is cut off within an extended header");
  }
  if (type == 'L') {
    extension.gnu_name = until_nul(text);
  } else if (type != 'K') {
    read_pax(text, type == 'g', extension);
  }
  extension.is_there = extension.is_there || type != 'g';
}

std::optional<TarMember> TarReader::next() {
  Extension extension;
  for (;;) {
    end_member();
    if (!next_header()) {
      if (extension.is_there) {
        fail("the archive ends behind an extended header");
      }
      return std::nullopt;
    }
    const std::int64_t offset = position_;
    const char type = header_[156];
    const bool extends = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    const bool has_contents = extends || type == '0' || type == '\0' || type == '7';
    if (type == 'S') {
      fail("the archive has sparse files: write it again without tar's option --sparse");
    }
    if (!has_contents && (type < '1' || type > '6')) {
      fail(fmt::format("a member has the unknown type {:#04x}", static_cast<unsigned char>(type)));
    }
    // Hard links may repeat the size of what they link to.
    const std::optional<std::int64_t> size = has_contents ? number(124, 12) : 0;
    if (!size) {
      fail("the size of a header is not a number");
    }
    const std::int64_t bytes = has_contents && !extends ? extension.bytes.value_or(*size) : *size;
    position_ += kTarBlock;
    left_ = bytes;
    padding_ = (kTarBlock - bytes % kTarBlock) % kTarBlock;
    if (extends) {
      read_extension(type, bytes, extension);
      continue;
    }
    TarMember member;
    member.bytes = bytes;
    member.offset = offset;
    member.name = extension.name       ? *extension.name
                  : extension.gnu_name ? *extension.gnu_name
                                       : header_name();
    // Old archives mark folders by the last character of their names.
    member.is_file = has_contents && !member.name.ends_with('/');
    return member;
  }
}

}  // namespace trireme
