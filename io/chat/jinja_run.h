// Renders a parsed template. A pure function of the template and its variables.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/chat/jinja_tree.h"

namespace trireme {

struct RenderedTemplate {
  std::string text;
  // The places in the text that {% generation %} has marked, as [begin, end) in bytes.
  std::vector<std::pair<std::size_t, std::size_t>> generated;
  std::int64_t spent = 0;  // of JinjaBudget
};

// variables: by name. Throws DataError that names the line, also if the template refuses the
// variables (raise_exception), or takes too long or too much memory.
RenderedTemplate render_jinja(const JinjaBody& body, const JinjaMapping& variables);

}  // namespace trireme
