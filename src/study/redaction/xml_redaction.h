// Removes secrets from elements and comments of XML, which stay well-formed. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/study/redaction/xml_elements.h"

namespace trireme {

// Appends what begins with the '<' at `at` to `out` without its secrets, if it is an element, a tag
// or a comment, and returns the place behind it; otherwise `at`. Each text, comment and value of an
// attribute is searched by itself, with its entities such as &quot; resolved. elements: of the
// text. announced: the secret's name that the element before has given the next one, as in
// <key>password</key>; updated. secrets: raised by how many were replaced.
std::size_t redact_xml(std::string_view text, const XmlElements& elements, std::size_t at,
                       std::string& announced, std::string& out, std::int64_t& secrets);

}  // namespace trireme
