#include "src/study/redaction/xml_elements.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <set>

namespace trireme {
namespace {

constexpr std::size_t kLongestXmlTag = 65'536;  // bytes
constexpr std::size_t kLongestReference = 32;   // bytes of an entity such as &quot;
constexpr std::uint32_t kLastCharacter = 0x10FFFF;

struct Entity {
  std::string_view name;
  char character;
};
constexpr std::array kEntities = {Entity{"&quot;", '"'}, Entity{"&apos;", '\''},
                                  Entity{"&lt;", '<'}, Entity{"&gt;", '>'}, Entity{"&amp;", '&'}};

// An entity in a text: its bytes, and the code of its character; 0 if that is not known.
struct Reference {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

// Returns the number between "&#" or "&#x" and the semicolon of a reference, or 0.
std::uint32_t code_of_number(std::string_view digits) {
  const bool hex = digits.starts_with('x') || digits.starts_with('X');
  digits.remove_prefix(hex ? 1 : 0);
  std::uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  const bool valid = error == std::errc() && end == digits.data() + digits.size();
  return valid && code <= kLastCharacter && (code < 0xD800 || code > 0xDFFF) ? code : 0;
}

// Returns the entity at `at`, such as &quot;, &#34; or &nbsp;, if there is one.
std::optional<Reference> reference_at(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '&') {
    return std::nullopt;
  }
  const std::string_view near = text.substr(at, kLongestReference);
  const std::size_t end = near.find(';');
  const std::string_view inner = near.substr(1, end == near.npos ? 0 : end - 1);
  if (inner.empty() ||
      !std::all_of(inner.begin() + (inner[0] == '#' ? 1 : 0), inner.end(),
                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; })) {
    return std::nullopt;
  }
  if (inner[0] == '#') {
    return Reference{end + 1, code_of_number(inner.substr(1))};
  }
  const auto* const entity =
      std::find_if(kEntities.begin(), kEntities.end(),
                   [&](const Entity& each) { return near.substr(0, end + 1) == each.name; });
  const bool known = entity != kEntities.end();
  return Reference{end + 1, known ? static_cast<std::uint32_t>(entity->character) : 0};
}

void append_character(std::uint32_t code, std::string& out) {
  const auto part = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    part(code);
    return;
  }
  if (code < 0x800) {
    part(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    part(0xE0 | code >> 12);
    part(0x80 | (code >> 6 & 0x3F));
  } else {
    part(0xF0 | code >> 18);
    part(0x80 | (code >> 12 & 0x3F));
    part(0x80 | (code >> 6 & 0x3F));
  }
  part(0x80 | (code & 0x3F));
}

bool is_xml_white(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::size_t skip_xml_white(std::string_view text, std::size_t at) {
  while (at < text.size() && is_xml_white(text[at])) {
    ++at;
  }
  return at;
}

// Returns the end of a name that begins at `at`, or `at` if there is none.
std::size_t end_of_xml_name(std::string_view text, std::size_t at) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-.:").find(c) != std::string_view::npos;
  };
  if (at >= text.size() ||
      (text[at] != '_' && !std::isalpha(static_cast<unsigned char>(text[at])))) {
    return at;
  }
  while (at < text.size() && is_part(text[at])) {
    ++at;
  }
  return at;
}

// Returns the comment or CDATA that begins at `at`. ends: whether any of these can end from there
// on; otherwise they are not looked for again.
std::optional<XmlMark> mark_at(std::string_view text, std::size_t at, std::array<bool, 2>& ends) {
  constexpr std::array<std::array<std::string_view, 2>, 2> kMarks = {
      {{"<!--", "-->"}, {"<![CDATA[", "]]>"}}};
  for (std::size_t i = 0; i < kMarks.size(); ++i) {
    const auto& [open, close] = kMarks[i];
    if (ends[i] && text.substr(at).starts_with(open)) {
      const std::size_t begin = at + open.size();
      const std::size_t end = text.find(close, begin);
      ends[i] = end != std::string_view::npos;
      return ends[i] ? std::optional(XmlMark{begin, end, end + close.size()}) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string_view without_prefix(std::string_view name) {
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

}  // namespace

std::optional<XmlTag> xml_tag_at(std::string_view text, std::size_t at) {
  XmlTag tag;
  text = text.substr(0, at + std::min(kLongestXmlTag, text.size() - at));
  tag.closes = text.substr(at).starts_with("</");
  const std::size_t name = at + (tag.closes ? 2 : 1);
  at = end_of_xml_name(text, name);
  if (at == name) {
    return std::nullopt;
  }
  tag.name = without_prefix(text.substr(name, at - name));
  while (true) {
    const std::size_t begin = skip_xml_white(text, at);
    if (begin < text.size() && text[begin] == '>') {
      tag.end = begin + 1;
      return tag;
    }
    if (text.substr(begin).starts_with("/>") && !tag.closes) {
      tag.empty = true;
      tag.end = begin + 2;
      return tag;
    }
    const std::size_t end = end_of_xml_name(text, begin);
    std::size_t quote = skip_xml_white(text, end);
    if (begin == at || end == begin || quote >= text.size() || text[quote] != '=') {
      return std::nullopt;
    }
    quote = skip_xml_white(text, quote + 1);
    const bool quoted = quote < text.size() && (text[quote] == '"' || text[quote] == '\'');
    const std::size_t close = quoted ? text.find(text[quote], quote + 1) : std::string_view::npos;
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    tag.attributes.push_back({without_prefix(text.substr(begin, end - begin)), quote + 1, close});
    at = close + 1;
  }
}

XmlElements::XmlElements(std::string_view text) {
  struct Open {
    std::string_view name;
    std::size_t at;
  };
  std::vector<Open> open;
  std::unordered_map<std::string_view, int> open_by_name;
  std::array<bool, 2> ends = {true, true};  // whether a comment or CDATA from here on may end
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    if (const auto mark = mark_at(text, at, ends)) {
      marks_.emplace(at, *mark);
      at = mark->end;
      continue;
    }
    const auto tag = xml_tag_at(text, at);
    if (tag && tag->empty) {
      end_tags_.emplace(at, at);
    } else if (tag && !tag->closes) {
      open.push_back({tag->name, at});
      ++open_by_name[tag->name];
    } else if (tag && open_by_name[tag->name] > 0) {
      while (open.back().name != tag->name) {
        --open_by_name[open.back().name];
        open.pop_back();
      }
      end_tags_.emplace(open.back().at, at);
      --open_by_name[tag->name];
      open.pop_back();
    }
    at = tag ? tag->end : at + 1;
  }
}

std::optional<std::size_t> XmlElements::end_tag(std::size_t at) const {
  const auto found = end_tags_.find(at);
  return found == end_tags_.end() ? std::nullopt : std::optional(found->second);
}

const XmlMark* XmlElements::mark(std::size_t at) const {
  const auto found = marks_.find(at);
  return found == marks_.end() ? nullptr : &found->second;
}

std::string without_entities(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const auto reference = reference_at(text, at);
    if (reference && reference->code != 0) {
      append_character(reference->code, plain);
      at += reference->bytes;
    } else {
      plain += text[at++];
    }
  }
  return plain;
}

std::string with_entities(std::string_view text, std::string_view original) {
  std::set<std::string_view> unknown;
  std::array<std::string_view, ' '> controls;  // by their characters, such as &#10;
  for (std::size_t at = original.find('&'); at != original.npos; at = original.find('&', at + 1)) {
    const auto reference = reference_at(original, at);
    if (reference && reference->code == 0) {
      unknown.insert(original.substr(at, reference->bytes));
    } else if (reference && reference->code < controls.size()) {
      controls[reference->code] = original.substr(at, reference->bytes);
    }
  }
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto code = static_cast<unsigned char>(text[at]);
    const auto reference = reference_at(text, at);
    const auto* const entity =
        std::find_if(kEntities.begin(), kEntities.end(),
                     [&](const Entity& each) { return each.character == text[at]; });
    if (code < controls.size() && !controls[code].empty()) {
      result += controls[code];
    } else if (entity == kEntities.end() ||
               (reference && unknown.contains(text.substr(at, reference->bytes)))) {
      result += text[at];
    } else {
      result += entity->name;
    }
  }
  return result;
}

std::size_t entity_bytes(std::string_view text, std::size_t at) {
  const auto reference = reference_at(text, at);
  return reference && reference->code > ' ' && reference->code < 0x7F ? reference->bytes : 0;
}

}  // namespace trireme
