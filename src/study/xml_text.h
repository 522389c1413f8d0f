// Finds the secrets in elements of XML. Pure functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "src/study/secret_text.h"

namespace trireme {

// Returns where the name of a tag begins, with its namespace as in "<wsse:Password", if the word at
// `begin` ends one; `begin` itself behind "<"; or npos.
std::size_t begin_of_tag_name(std::string_view text, std::size_t begin);
// Returns the attributes and the content of the element whose tag has the name [begin, end), where
// there are any.
std::vector<TextRange> parts_of_element(std::string_view text, std::size_t begin, std::size_t end);
// Returns the text between tags that begins at `at`. name: that of its element, or "" if the next
// end tag counts.
TextRange text_of_element(std::string_view text, std::size_t at, std::string_view name);
// Returns the value of a key of a property list, as in "<key>Password</key><string>x</string>".
// Empty if there is none. end: of the key.
TextRange value_of_property(std::string_view text, std::size_t end);
// Returns the place of the first end tag in [begin, end) whose element begins shortly before, or
// `end`.
std::size_t end_before_tag(std::string_view text, std::size_t begin, std::size_t end);

}  // namespace trireme
