// Removes secrets from pictures in SVG, which stay well-formed. Pure functions.
#pragma once

#include <string_view>

#include "src/study/redaction.h"

namespace trireme {

// Returns whether the first element of a text is that of SVG.
bool is_svg(std::string_view text);
// Removes secrets from each text between tags, comment and value of an attribute by itself, with
// its entities such as &quot; resolved.
Redacted redact_svg(std::string_view svg);
// Returns whether two texts have the same tags, with the same names of attributes.
bool have_same_tags(std::string_view a, std::string_view b);

}  // namespace trireme
