// Finds the elements and comments of XML in a text of any kind, which may be a document, a part of
// one, or a log. Values; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trireme {

// An attribute of a tag: its name, and the range of its value without the quotes.
struct XmlAttribute {
  std::string_view name;
  std::size_t begin = 0, end = 0;
};

// A tag such as <a b="c">, </a> or <a/>. The prefix of a namespace is no part of a name.
struct XmlTag {
  std::string_view name;
  std::vector<XmlAttribute> attributes;
  std::size_t end = 0;  // behind the '>'
  bool closes = false;  // </a>
  bool empty = false;   // <a/>
};

// Returns the tag that begins at `at`, or nothing if there is none that is complete.
std::optional<XmlTag> xml_tag_at(std::string_view text, std::size_t at);

// A comment or a section of CDATA: the range of its text, and its end.
struct XmlMark {
  std::size_t begin = 0, text_end = 0, end = 0;
};

// XmlElements knows where the elements and comments of a text end. Tags without a partner belong to
// none.
class XmlElements {
 public:
  explicit XmlElements(std::string_view text);

  // Returns where the end tag of the element begins whose tag begins at `at`; `at` for an empty
  // one such as <a/>, or nothing if no element begins there.
  std::optional<std::size_t> end_tag(std::size_t at) const;
  // Returns the comment or CDATA that begins at `at`, or null.
  const XmlMark* mark(std::size_t at) const;

 private:
  std::unordered_map<std::size_t, std::size_t> end_tags_;  // by the place of the tag
  std::unordered_map<std::size_t, XmlMark> marks_;         // by their begin
};

// Resolves the entities of XML that stand for a character, such as &quot;, &#34; and &#10;. Others,
// such as &nbsp;, stay.
std::string without_entities(std::string_view text);
// Writes the characters that mean something in XML as entities, and line ends and tabs as those in
// the original, where the entities that are not known come from, too.
std::string with_entities(std::string_view text, std::string_view original);
// Returns the bytes of the entity of an ASCII character at `at` that is no blank, or 0.
std::size_t entity_bytes(std::string_view text, std::size_t at);

}  // namespace trireme
