#include "io/tokens/unicode.h"

#include <iterator>
#include <vector>

namespace trireme {
namespace {

#include "io/tokens/unicode_tables.inc"

constexpr std::size_t kCharacters = 0x110000;

std::vector<std::uint8_t> class_table() {
  std::vector<std::uint8_t> table(kCharacters);
  constexpr std::size_t kNumbers = std::size(kClassRuns);
  for (std::size_t i = 0; i < kNumbers; i += 2) {
    const std::size_t end = i + 2 < kNumbers ? kClassRuns[i + 2] : kCharacters;
    for (std::size_t code = kClassRuns[i]; code < end; ++code) {
      table[code] = static_cast<std::uint8_t>(kClassRuns[i + 1]);
    }
  }
  return table;
}

// Returns the bytes of the well-formed character at `at`, or 0; then `bad` is the length of the
// maximal part of an ill-formed one.
std::size_t well_formed(std::string_view text, std::size_t at, std::size_t& bad) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  bad = 1;
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xC2 || first > 0xF4) {
    return 0;
  }
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      bad = i;
      return 0;
    }
  }
  return length;
}

}  // namespace

std::uint8_t class_in_tables(char32_t code) {
  // Made when it is first needed: memory that lacks before main() would end the program without
  // words.
  static const std::vector<std::uint8_t> classes = class_table();
  return classes[code];
}

void append_utf8(char32_t code, std::string& text) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_utf8(std::string_view text) {
  std::size_t bad = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const std::size_t length = well_formed(text, at, bad);
    if (length == 0) {
      return false;
    }
    at += length;
  }
  return true;
}

std::string with_replacements(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t bad = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = well_formed(text, at, bad);
    length == 0 ? result.append("\xEF\xBF\xBD") : result.append(text.substr(at, length));
    at += length == 0 ? bad : length;
  }
  return result;
}

namespace {

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kFirstSyllable = 0xAC00;
constexpr char32_t kFirstLeading = 0x1100;
constexpr char32_t kFirstVowel = 0x1161;
constexpr char32_t kBeforeTrailing = 0x11A7;
constexpr char32_t kLeadings = 19;
constexpr char32_t kVowels = 21;
constexpr char32_t kTrailings = 28;
constexpr char32_t kSyllables = kLeadings * kVowels * kTrailings;

struct Decomposition {
  const std::uint32_t* codes = nullptr;
  std::uint8_t length = 0;
  bool compatible = false;
};

// Lookups of the tables, made once.
class Tables {
 public:
  Tables() : orders_(kCharacters), index_(kCharacters) {
    for (std::size_t i = 0; i < std::size(kCombiningClasses); i += 2) {
      orders_[kCombiningClasses[i]] = static_cast<std::uint8_t>(kCombiningClasses[i + 1]);
    }
    pairs_.resize(kPairSlots);
    decompositions_.emplace_back();
    for (std::size_t i = 0; i < std::size(kDecompositions);) {
      const std::uint32_t head = kDecompositions[i];
      const std::uint32_t code = head & 0x1FFFFF;
      const auto length = static_cast<std::uint8_t>(head >> 21 & 0x1F);
      index_[code] = static_cast<std::uint16_t>(decompositions_.size());
      decompositions_.push_back({kDecompositions + i + 1, length, head >> 26 == 2});
      if (head >> 26 == 0) {
        *slot(kDecompositions[i + 1], kDecompositions[i + 2]) = {kDecompositions[i + 1],
                                                                 kDecompositions[i + 2], code};
      }
      i += 1U + length;
    }
  }

  std::uint8_t order(char32_t code) const { return orders_[code]; }

  void decompose(char32_t code, bool compatible, std::u32string& to) const {
    if (code - kFirstSyllable < kSyllables) {
      const char32_t syllable = code - kFirstSyllable;
      to.push_back(kFirstLeading + syllable / (kVowels * kTrailings));
      to.push_back(kFirstVowel + syllable % (kVowels * kTrailings) / kTrailings);
      if (syllable % kTrailings != 0) {
        to.push_back(kBeforeTrailing + syllable % kTrailings);
      }
      return;
    }
    const Decomposition& found = decompositions_[index_[code]];
    if (found.codes == nullptr || (found.compatible && !compatible)) {
      to.push_back(code);
      return;
    }
    for (std::uint8_t i = 0; i < found.length; ++i) {
      decompose(found.codes[i], compatible, to);
    }
  }

  // Returns 0 if the two do not compose.
  char32_t compose(char32_t a, char32_t b) const {
    if (a - kFirstLeading < kLeadings && b - kFirstVowel < kVowels) {
      return kFirstSyllable + ((a - kFirstLeading) * kVowels + (b - kFirstVowel)) * kTrailings;
    }
    if (a - kFirstSyllable < kSyllables && (a - kFirstSyllable) % kTrailings == 0 &&
        b > kBeforeTrailing && b < kBeforeTrailing + kTrailings) {
      return a + (b - kBeforeTrailing);
    }
    return const_cast<Tables*>(this)->slot(a, b)->composed;
  }

 private:
  struct Pair {
    char32_t a = 0;
    char32_t b = 0;
    char32_t composed = 0;
  };
  static constexpr std::size_t kPairSlots = 4096;  // about 960 are used

  // Returns the slot of a pair, or the free one for it.
  Pair* slot(char32_t a, char32_t b) {
    std::size_t at = (a * 31 + b) * 2654435761U % kPairSlots;
    while (pairs_[at].composed != 0 && (pairs_[at].a != a || pairs_[at].b != b)) {
      at = (at + 1) % kPairSlots;
    }
    return &pairs_[at];
  }

  std::vector<std::uint8_t> orders_;
  std::vector<std::uint16_t> index_;  // into decompositions_; 0 = none
  std::vector<Decomposition> decompositions_;
  std::vector<Pair> pairs_;
};

// Sorts each run of combining characters by their class, stably.
void order_marks(std::u32string& codes, const Tables& tables) {
  for (std::size_t i = 1; i < codes.size(); ++i) {
    const char32_t code = codes[i];
    const std::uint8_t order = tables.order(code);
    std::size_t to = i;
    while (order != 0 && to > 0 && tables.order(codes[to - 1]) > order) {
      codes[to] = codes[to - 1];
      --to;
    }
    codes[to] = code;
  }
}

void compose_all(std::u32string& codes, const Tables& tables) {
  std::size_t starter = codes.size();  // none yet
  std::size_t out = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const char32_t code = codes[i];
    const std::uint8_t order = tables.order(code);
    const std::uint8_t before = out > 0 ? tables.order(codes[out - 1]) : std::uint8_t{0};
    const bool blocked = out > 0 && starter != out - 1 && before >= order;
    if (starter != codes.size() && !blocked) {
      if (const char32_t composed = tables.compose(codes[starter], code); composed != 0) {
        codes[starter] = composed;
        continue;
      }
    }
    starter = order == 0 ? out : starter;
    codes[out++] = code;
  }
  codes.resize(out);
}

}  // namespace

std::string normalized(std::string_view text, NormalForm form) {
  static const Tables tables;
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  // No character below these decomposes, or combines with another.
  const char32_t plain = compatible ? 0xA0 : composes ? 0x300 : 0xC0;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t next = at;
    if (next_character(text, next) >= plain) {
      break;
    }
    at = next;
  }
  if (at == text.size()) {
    return std::string(text);
  }
  std::u32string codes;
  codes.reserve(text.size());
  for (at = 0; at < text.size();) {
    tables.decompose(next_character(text, at), compatible, codes);
  }
  order_marks(codes, tables);
  if (composes) {
    compose_all(codes, tables);
  }
  std::string result;
  result.reserve(text.size());
  for (const char32_t code : codes) {
    append_utf8(code, result);
  }
  return result;
}

}  // namespace trireme
