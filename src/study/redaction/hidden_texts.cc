#include "src/study/redaction/hidden_texts.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the first three bytes as a number.
std::uint32_t first_bytes(std::string_view text) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < HiddenTexts::kLeastBytes; ++i) {
    number = number << 8 | static_cast<unsigned char>(small_letter(text[i]));
  }
  return number;
}

bool begins_with(std::string_view text, std::string_view small) {
  return text.size() >= small.size() &&
         std::equal(small.begin(), small.end(), text.begin(),
                    [](char one, char other) { return one == small_letter(other); });
}

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  return begin == line.npos ? std::string_view()
                            : line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

// Returns the number of four hexadecimal digits behind \u at `at`.
std::optional<std::uint32_t> unit_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.substr(at, 2) != "\\u" || at + 6 > text.size()) {
    return std::nullopt;
  }
  std::uint32_t unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const std::size_t digit = kDigits.find(small_letter(text[i]));
    if (digit == kDigits.npos) {
      return std::nullopt;
    }
    unit = unit << 4 | static_cast<std::uint32_t>(digit);
  }
  return unit;
}

std::string in_utf8(std::uint32_t point) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  const auto more = [&](int shift) { return byte(0x80 | (point >> shift & 0x3F)); };
  return point < 0x80      ? std::string{byte(point)}
         : point < 0x800   ? std::string{byte(0xC0 | point >> 6), more(0)}
         : point < 0x10000 ? std::string{byte(0xE0 | point >> 12), more(6), more(0)}
                           : std::string{byte(0xF0 | point >> 18), more(12), more(6), more(0)};
}

struct Escape {
  std::string meaning;
  std::size_t bytes = 0;
};

// Returns the escape of JSON at `at`, or the byte there.
Escape escape_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kSigns = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const auto unit = unit_at(text, at)) {
    const auto low = *unit >> 10 == 0x36 ? unit_at(text, at + 6) : std::nullopt;
    return low && *low >> 10 == 0x37
               ? Escape{in_utf8(0x10000 + ((*unit & 0x3FF) << 10 | (*low & 0x3FF))), 12}
               : Escape{in_utf8(*unit), 6};
  }
  const std::size_t sign =
      text[at] == '\\' && at + 1 < text.size() ? kSigns.find(text[at + 1]) : kSigns.npos;
  return sign == kSigns.npos ? Escape{std::string(1, text[at]), 1}
                             : Escape{std::string(1, kMeanings[sign]), 2};
}

}  // namespace

HiddenTexts::HiddenTexts(std::string_view list) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // at the begin of files in UTF-8
  list.remove_prefix(list.starts_with(kMark) ? kMark.size() : 0);
  if (list.find('\0') != list.npos) {
    throw DataError("it holds bytes of zero: write it in UTF-8");
  }
  std::size_t count = 0;
  for (std::size_t number = 1; !list.empty(); ++number) {
    const std::size_t end = std::min(list.find_first_of("\r\n"), list.size());
    const std::string_view text = without_blanks(list.substr(0, end));
    list.remove_prefix(std::min(end + (list.substr(end).starts_with("\r\n") ? 2 : 1), list.size()));
    if (text.empty()) {
      continue;
    }
    if (text.size() < kLeastBytes || text.size() > kMostBytes) {
      throw DataError(
          fmt::format("line {} has {} bytes: give {} to {}, since shorter texts stand "
                      "in many words",
                      number, text.size(), kLeastBytes, kMostBytes));
    }
    if (++count > kMostTexts) {
      throw DataError(fmt::format("there are more than {} lines", kMostTexts));
    }
    add(text);
    if (const std::string redacted = redact(text).text; redacted != kRedacted) {
      add(redacted);
    }
  }
  if (count == 0) {
    throw DataError("no line holds a text");
  }
  for (auto& [begin, texts] : texts_) {
    std::sort(texts.begin(), texts.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    });
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  }
}

void HiddenTexts::add(std::string_view text) {
  std::string& small = texts_[first_bytes(text)].emplace_back(text);
  std::transform(small.begin(), small.end(), small.begin(), small_letter);
}

void HiddenTexts::find(std::string_view line, std::size_t begin,
                       const std::vector<std::size_t>& offsets, std::vector<Range>& found) const {
  const auto place = [&](std::size_t at) { return begin + (offsets.empty() ? at : offsets[at]); };
  for (std::size_t at = 0; at + kLeastBytes <= line.size(); ++at) {
    const auto texts = texts_.find(first_bytes(line.substr(at)));
    if (texts == texts_.end()) {
      continue;
    }
    const auto one =
        std::find_if(texts->second.begin(), texts->second.end(),
                     [&](const std::string& each) { return begins_with(line.substr(at), each); });
    if (one != texts->second.end()) {
      found.push_back({place(at), place(at + one->size())});
    }
  }
}

Redacted HiddenTexts::apply(std::string_view text) const {
  std::vector<Range> found;
  for (std::size_t begin = 0; begin < text.size() && !texts_.empty();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    find(line, begin, {}, found);
    if (line.find('\\') != line.npos) {
      std::string plain;
      std::vector<std::size_t> offsets;
      for (std::size_t at = 0; at < line.size();) {
        const Escape escape = escape_at(line, at);
        plain += escape.meaning;
        offsets.resize(plain.size(), at);
        at += escape.bytes;
      }
      offsets.push_back(line.size());
      find(plain, begin, offsets, found);
    }
    begin = end + 1;
  }
  std::sort(found.begin(), found.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Redacted result;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < found.size();) {
    Range all = found[i];
    for (; i < found.size() && (found[i].begin < all.end || found[i].begin == all.begin); ++i) {
      all.end = std::max(all.end, found[i].end);
    }
    result.text += text.substr(copied, all.begin - copied);
    result.text += kRedacted;
    ++result.secrets;
    copied = all.end;
  }
  result.text += text.substr(copied);
  return result;
}

}  // namespace trireme
