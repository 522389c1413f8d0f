#include "src/study/xml_text.h"

#include <algorithm>
#include <string>

#include "src/study/assigned_text.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestElement = 16'384;  // bytes in which its end tag is looked for
constexpr std::size_t kLongestTag = 512;         // bytes

// Adds the values of the attributes in a range of a tag, or all of it if none is in quotes.
void add_values(std::string_view text, const TextRange& attributes, std::vector<TextRange>& to) {
  bool has_quotes = false;
  for (std::size_t at = attributes.begin; at < attributes.end;) {
    const std::size_t open = first_of(text.substr(0, attributes.end), "\"'", at);
    const std::size_t close =
        open < attributes.end ? text.substr(0, attributes.end).find(text[open], open + 1) : open;
    if (close >= attributes.end) {
      break;
    }
    has_quotes = true;
    to.push_back({open + 1, close});
    at = close + 1;
  }
  if (!has_quotes && attributes.begin < attributes.end) {
    to.push_back(attributes);
  }
}

}  // namespace

std::size_t begin_of_tag_name(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  if (at > 1 && text[at - 1] == ':' && end_of_word(text, at - 2) == at - 1) {
    const std::size_t least = at > kLongestTag ? at - kLongestTag : 0;
    for (--at; at > least && end_of_word(text, at - 1) > at - 1;) {
      --at;
    }
  }
  return at > 0 && text[at - 1] == '<' ? at : std::string_view::npos;
}

std::vector<TextRange> parts_of_element(std::string_view text, std::size_t begin, std::size_t end) {
  std::vector<TextRange> parts;
  const std::size_t close = first_of(text.substr(0, end + kLongestTag), "<>", end);
  if (close >= text.size() || text[close] != '>') {
    return parts;
  }
  const bool empty = text[close - 1] == '/';
  add_values(text, {skip_white(text, end), close - (empty ? 1 : 0)}, parts);
  if (!empty) {
    parts.push_back(text_of_element(text, close + 1, text.substr(begin, end - begin)));
  }
  return parts;
}

TextRange text_of_element(std::string_view text, std::size_t at, std::string_view name) {
  const std::string_view near = text.substr(at, kLongestElement);
  const std::size_t close = near.find("</" + std::string(name));
  return {at, close == std::string_view::npos ? first_of(text, "<", at) : at + close};
}

TextRange value_of_property(std::string_view text, std::size_t end) {
  constexpr std::string_view kEndOfKey = "</key>";
  constexpr std::string_view kString = "<string>";
  if (!text.substr(end).starts_with(kEndOfKey)) {
    return {end, end};
  }
  const std::size_t value = skip_white(text, end + kEndOfKey.size());
  return text.substr(value).starts_with(kString)
             ? text_of_element(text, value + kString.size(), "string")
             : TextRange{end, end};
}

std::size_t end_before_tag(std::string_view text, std::size_t begin, std::size_t end) {
  const std::size_t close = text.substr(0, end).find("</", begin);
  if (close == std::string_view::npos) {
    return end;
  }
  const std::size_t name = first_of(text, "> \t\n", close + 2);
  const std::size_t least = begin > kLongestTag ? begin - kLongestTag : 0;
  const std::string open = "<" + std::string(text.substr(close + 2, name - close - 2));
  const bool opened = open.size() > 1 && open.size() < kLongestTag &&
                      text.substr(least, begin - least).find(open) != std::string_view::npos;
  return opened ? close : end;
}

}  // namespace trireme
