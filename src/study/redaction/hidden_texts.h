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
  // Takes one text per line, without the blanks around it; empty lines are none. Throws DataError,
  // which names the number of the line, if one is too short or too long, or there are none or too
  // many.
  explicit HiddenTexts(std::string_view list);

  // Replaces the texts wherever they stand, also within words, whether their letters are small or
  // capital, and as JSON writes them. Of texts at the same place, the longest is replaced. Takes
  // time linear in the bytes, unless many texts begin with the same three.
  Redacted apply(std::string_view text) const;

 private:
  void add(std::string_view text);

  // The texts in small letters by their first three bytes, the longest first.
  std::unordered_map<std::uint32_t, std::vector<std::string>> texts_;
};

}  // namespace trireme
