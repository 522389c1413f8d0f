// Returns any bytes as text for an XML element or attribute, escaped and without what XML can't
// represent. A pure function.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

std::string xml_text(std::string_view text);

}  // namespace trireme
