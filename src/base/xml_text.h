// Any bytes as the text of an XML element or attribute: escaped, and without what XML can't carry.
// Pure function.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

std::string xml_text(std::string_view text);

}  // namespace trireme
