#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/sealed_text.h"
#include "src/keys/section_line.h"

namespace trireme {
namespace {

// How far away from its place a record is looked for, to say what was done to the file.
constexpr std::int64_t kFarthest = 1000;

struct Section {
  BlockCipher cipher;
  std::int64_t records = 0;  // opened so far
  bool has_ended = false;
};

class SealedTextOpener {
 public:
  SealedTextOpener(std::string_view file, const std::string& name, const FindDataKey& find,
                   const std::string& origin)
      : file_(file), name_(name), find_(find), origin_(origin) {}

  OpenedText open();

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw DataError(fmt::format("{}, line {}: {}", printable(origin_), line_number_, what));
  }
  // Returns what a function makes of the line, whose refusal gets the place.
  template <class Parse>
  auto formed(Parse parse) const {
    try {
      return parse();
    } catch (const DataError& error) {
      refuse(error.what());
    }
  }
  void begin_section(std::string_view line);
  void open_record(std::string_view line);
  // Tries to open `sealed` as the record with this number. Fills buffer_.
  bool opens(BlockCipher& cipher, BlockPlace place, std::string_view sealed);
  [[noreturn]] void explain(std::string_view sealed);

  std::string_view file_;
  const std::string& name_;
  const FindDataKey& find_;
  const std::string& origin_;
  OpenedText opened_;
  std::vector<Section> sections_;  // the current one and the one before it
  std::string_view last_line_;
  std::int64_t line_number_ = 0;
  std::string buffer_;
};

OpenedText SealedTextOpener::open() {
  for (std::string_view rest = file_;;) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      break;
    }
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    ++line_number_;
    if (is_sealed_text(line)) {
      begin_section(line);
    } else {
      open_record(line);
    }
    last_line_ = line;
  }
  if (!sections_.empty() && !sections_.back().has_ended) {
    ++opened_.unfinished;
  }
  return std::move(opened_);
}

void SealedTextOpener::begin_section(std::string_view line) {
  const SectionHead head = formed([&] { return parse_section_line(line); });
  const DataKey& key = find_(std::string(head.key));
  if (!same_mac(mac_of_section(key, name_, head.fields), head.mac)) {
    refuse("the beginning of a section was changed, or comes from another file");
  }
  if (line_number_ == 1) {
    opened_.previous = head.previous;
    opened_.first_key = head.key;
  } else if (head.previous != digest_of_line(last_line_)) {
    refuse(
        "this section does not follow the line before it: lines or sections were removed, "
        "exchanged or added");
  }
  if (!sections_.empty() && !sections_.back().has_ended) {
    ++opened_.unfinished;
  }
  if (sections_.size() == 2) {
    sections_.erase(sections_.begin());
  }
  sections_.push_back({cipher_of_section(key, name_, head.salt)});
  ++opened_.sections;
}

bool SealedTextOpener::opens(BlockCipher& cipher, BlockPlace place, std::string_view sealed) {
  const std::size_t bytes = sealed.size() - kTagBytes;
  BlockTag tag{};
  std::memcpy(tag.data(), sealed.data() + bytes, tag.size());
  buffer_.resize(bytes + 1);
  return cipher.open(place, reinterpret_cast<const std::byte*>(sealed.data()),
                     static_cast<std::int64_t>(bytes), tag,
                     reinterpret_cast<std::byte*>(buffer_.data()));
}

void SealedTextOpener::open_record(std::string_view line) {
  if (sections_.empty()) {
    refuse("there is no section to which this record could belong: lines before it were removed");
  }
  const std::string sealed = formed([&] { return decode_record(line); });
  Section& section = sections_.back();
  const bool is_end = ends_section(sealed);
  if (section.has_ended || !opens(section.cipher, {section.records, is_end}, sealed)) {
    explain(sealed);
  }
  ++section.records;
  section.has_ended = is_end;
  opened_.text.append(buffer_, 0, sealed.size() - kTagBytes);
}

void SealedTextOpener::explain(std::string_view sealed) {
  Section& section = sections_.back();
  const bool is_end = ends_section(sealed);
  for (std::int64_t away = 1; away <= kFarthest; ++away) {
    if (opens(section.cipher, {section.records + away, is_end}, sealed)) {
      refuse(away == 1 ? "1 record before this one was removed"
                       : fmt::format("{} records before this one were removed", away));
    }
    if (away <= section.records &&
        opens(section.cipher, {section.records - away, is_end}, sealed)) {
      refuse("this record was in the file before: lines were repeated or exchanged");
    }
  }
  if (sections_.size() == 2 && opens(sections_[0].cipher, {sections_[0].records, is_end}, sealed)) {
    refuse("this record belongs to the section before: two processes wrote to the file at once");
  }
  refuse(section.has_ended
             ? "this record follows the end of its section: somebody else wrote it"
             : "this record was changed, or comes from another file, section or place");
}

}  // namespace

OpenedText open_sealed_text(std::string_view file, const std::string& name, const FindDataKey& find,
                            const std::string& origin) {
  return SealedTextOpener(file, name, find, origin).open();
}

}  // namespace trireme
