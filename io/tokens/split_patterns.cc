#include "io/tokens/split_patterns.h"

#include <cstdint>

#include "io/tokens/unicode.h"

namespace trireme {
namespace {

constexpr std::uint8_t kVisible = kLetter | kNumber | kSpace;  // [^\s\p{L}\p{N}] has none of these

struct Peeked {
  std::uint8_t bits = 0;  // character_class()
  char32_t code = 0;
  std::size_t end = 0;  // of the character
};

[[gnu::always_inline]] inline Peeked peek(std::string_view text, std::size_t at) {
  Peeked found;
  found.end = at;
  found.code = next_character(text, found.end);
  found.bits = character_class(found.code);
  return found;
}

// Returns the end of the run of characters at `at` whose bits are taken.
template <class Takes>
std::size_t skip_if(std::string_view text, std::size_t at, Takes takes) {
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {  // most characters of most texts
      if (!takes(kAsciiClasses[byte])) {
        break;
      }
      ++at;
      continue;
    }
    const Peeked next = peek(text, at);
    if (!takes(next.bits)) {
      break;
    }
    at = next.end;
  }
  return at;
}

// Returns the end of the run of characters at `at` that have one of the bits `any`.
std::size_t skip(std::string_view text, std::size_t at, std::uint8_t any) {
  return skip_if(text, at, [any](std::uint8_t bits) { return (bits & any) != 0; });
}

std::size_t skip_symbols(std::string_view text, std::size_t at) {
  return skip_if(text, at, [](std::uint8_t bits) { return (bits & kVisible) == 0; });
}

template <class Is>
std::size_t skip_bytes(std::string_view text, std::size_t at, Is is) {
  while (at < text.size() && is(text[at])) {
    ++at;
  }
  return at;
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

// Returns the end of 's, 't, 're, 've, 'm, 'll or 'd at `at`, or `at`. Without case, the letter s
// includes U+017F, whose case folds to it.
std::size_t contraction(std::string_view text, std::size_t at, bool any_case) {
  if (text[at] != '\'' || at + 1 == text.size()) {
    return at;
  }
  const auto letter = [&](std::size_t i) -> char {
    if (i >= text.size()) {
      return 0;
    }
    const char c = text[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  switch (letter(at + 1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return letter(at + 2) == 'e' ? at + 3 : at;
    case 'l':
      return letter(at + 2) == 'l' ? at + 3 : at;
    default:
      return any_case && text.substr(at + 1, 2) == "\xC5\xBF" ? at + 3 : at;
  }
}

// Matches \s+(?!\S)|\s+ at white space: a run in front of other text leaves its last character to
// that.
std::size_t spaces(std::string_view text, std::size_t at) {
  std::size_t last = at;
  std::size_t end = at;
  while (end < text.size()) {
    const Peeked next = peek(text, end);
    if ((next.bits & kSpace) == 0) {
      return last == at ? end : last;
    }
    last = end;
    end = next.end;
  }
  return end;
}

// Matches \s*[\r\n]+|\s+(?!\S)|\s+ at white space.
std::size_t spaces_or_lines(std::string_view text, std::size_t at) {
  std::size_t line_end = at;
  for (std::size_t end = at; end < text.size();) {
    const Peeked next = peek(text, end);
    if ((next.bits & kSpace) == 0) {
      break;
    }
    end = next.end;
    line_end = next.code == '\r' || next.code == '\n' ? end : line_end;
  }
  return line_end > at ? line_end : spaces(text, at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t scan_llama3_family(std::string_view text, std::size_t at, int digits) {
  if (const std::size_t end = contraction(text, at, true); end > at) {
    return end;
  }
  const Peeked first = peek(text, at);
  if ((first.bits & kLetter) != 0) {
    return skip(text, first.end, kLetter);
  }
  if ((first.bits & kNumber) != 0) {
    std::size_t end = first.end;
    for (int i = 1; i < digits && end < text.size(); ++i) {
      const Peeked next = peek(text, end);
      if ((next.bits & kNumber) == 0) {
        break;
      }
      end = next.end;
    }
    return end;
  }
  const Peeked second = first.end < text.size() ? peek(text, first.end) : Peeked{kSpace, 0, 0};
  if ((second.bits & kLetter) != 0 && !is_line_end(text[at])) {
    return skip(text, second.end, kLetter);
  }
  if ((first.bits & kSpace) == 0) {
    return skip_bytes(text, skip_symbols(text, first.end), is_line_end);
  }
  if (first.code == ' ' && (second.bits & kVisible) == 0) {
    return skip_bytes(text, skip_symbols(text, second.end), is_line_end);
  }
  return spaces_or_lines(text, at);
}

std::size_t scan_llama3(std::string_view text, std::size_t at) {
  return scan_llama3_family(text, at, 3);
}
std::size_t scan_qwen2(std::string_view text, std::size_t at) {
  return scan_llama3_family(text, at, 1);
}

// Matches U*L+ at `at`, where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L is
// [\p{Ll}\p{Lm}\p{Lo}\p{M}]; characters may belong to both. U* takes all it can and gives back
// characters until one belongs to L. Returns `at` if nothing matches.
std::size_t ending_in_lower(std::string_view text, std::size_t at) {
  const std::size_t upper_end = skip(text, at, kUpper);
  const std::size_t lower_end = skip(text, upper_end, kLower);
  if (lower_end > upper_end) {
    return lower_end;
  }
  std::size_t last_lower = at;  // the end of the last character of the run that belongs to L
  for (std::size_t end = at; end < upper_end;) {
    const Peeked next = peek(text, end);
    end = next.end;
    last_lower = (next.bits & kLower) != 0 ? end : last_lower;
  }
  return last_lower;
}

// Matches U+L* at `at`. Returns `at` if nothing matches.
std::size_t starting_in_upper(std::string_view text, std::size_t at) {
  const std::size_t upper_end = skip(text, at, kUpper);
  return upper_end == at ? at : skip(text, upper_end, kLower);
}

// [^\r\n\p{L}\p{N}]?U*L+|[^\r\n\p{L}\p{N}]?U+L*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|
// \s+(?!\S)|\s+ with U and L as in ending_in_lower().
std::size_t scan_tekken(std::string_view text, std::size_t at) {
  const Peeked first = peek(text, at);
  const bool leads = (first.bits & (kLetter | kNumber)) == 0 && !is_line_end(text[at]);
  for (const auto word : {ending_in_lower, starting_in_upper}) {
    if (const std::size_t end = leads ? word(text, first.end) : first.end; end > first.end) {
      return end;
    }
    if (const std::size_t end = word(text, at); end > at) {
      return end;
    }
  }
  if ((first.bits & kNumber) != 0) {
    return first.end;
  }
  const auto closes = [](char c) { return is_line_end(c) || c == '/'; };
  if ((first.bits & kSpace) == 0) {
    return skip_bytes(text, skip_symbols(text, first.end), closes);
  }
  if (first.code == ' ' && first.end < text.size()) {
    if (const std::size_t end = skip_symbols(text, first.end); end > first.end) {
      return skip_bytes(text, end, closes);
    }
  }
  return spaces_or_lines(text, at);
}

struct KnownPattern {
  std::string_view name;  // empty for another form of the one before it
  std::string_view regex;
  SplitScanner scanner;
};

constexpr KnownPattern kPatterns[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     scan_gpt2},
    {"", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", scan_gpt2},
    {"llama3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan_llama3},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
     R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan_qwen2},
    {"tekken",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     scan_tekken},
};

}  // namespace

std::size_t scan_gpt2(std::string_view text, std::size_t at) {
  if (const std::size_t end = contraction(text, at, false); end > at) {
    return end;
  }
  Peeked first = peek(text, at);
  if (first.code == ' ' && first.end < text.size()) {
    const Peeked second = peek(text, first.end);
    first = (second.bits & kSpace) == 0 ? second : first;
  }
  if ((first.bits & kLetter) != 0) {
    return skip(text, first.end, kLetter);
  }
  if ((first.bits & kNumber) != 0) {
    return skip(text, first.end, kNumber);
  }
  return (first.bits & kSpace) == 0 ? skip_symbols(text, first.end) : spaces(text, at);
}

SplitScanner scanner_of(std::string_view regex) {
  for (const KnownPattern& known : kPatterns) {
    if (known.regex == regex) {
      return known.scanner;
    }
  }
  return nullptr;
}

std::string_view regex_named(std::string_view name) {
  for (const KnownPattern& known : kPatterns) {
    if (!name.empty() && known.name == name) {
      return known.regex;
    }
  }
  return {};
}

}  // namespace trireme
