// HiddenTexts removes texts that somebody has listed, such as names of projects and people, from
// texts that leave the site. Immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/study/redaction/redaction.h"

namespace trireme {

class HiddenTexts {
 public:
  static constexpr std::size_t kLeastBytes = 3;  // of a text: shorter ones stand in many words
  static constexpr std::size_t kMostBytes = 4096;
  static constexpr std::size_t kMostTexts = 100'000;

  HiddenTexts() = default;
  // Takes one text per line, in UTF-8, without the blanks around it; empty lines are none. Throws
  // DataError, which names the number of the line, if one is too short or too long, or there are
  // none or too many, or if there are bytes of zero, as in UTF-16.
  explicit HiddenTexts(std::string_view list);

  // Replaces the texts wherever they stand, also within words, whether their letters (a to z) are
  // small or capital, with or without the escapes of JSON, and with secrets in them that redact()
  // has replaced before. What several texts cover is replaced once. Takes time linear in the bytes,
  // unless many texts begin with the same three.
  Redacted apply(std::string_view text) const;

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  void add(std::string_view text);
  // Adds where the longest text at each place of a line stands. begin: of the line in the whole
  // text. offsets: of each byte of the line and of its end behind `begin`, if escapes are resolved.
  void find(std::string_view line, std::size_t begin, const std::vector<std::size_t>& offsets,
            std::vector<Range>& found) const;

  // The texts in small letters by their first three bytes, the longest first.
  std::unordered_map<std::uint32_t, std::vector<std::string>> texts_;
};

}  // namespace trireme
