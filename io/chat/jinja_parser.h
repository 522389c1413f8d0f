// Parses the subset of Jinja that chat templates are written in. What is not supported is refused
// with its name and line, also in parts that no conversation reaches.
#pragma once

#include <string_view>

#include "io/chat/jinja_tree.h"

namespace trireme {

// Throws DataError that names the line.
JinjaBody parse_jinja(std::string_view source);

}  // namespace trireme
