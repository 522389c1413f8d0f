// Describes a plan in a section of a report: the best layouts, their time and memory, the front,
// the timeline of a step and the distribution of goodput. The text is that of `trireme plan -J`,
// and may be damaged or hostile.
#pragma once

#include <string>
#include <string_view>

#include "src/report/document.h"

namespace trireme {

// Returns whether a text looks like a plan, whole or not.
bool looks_like_plan(std::string_view text);
// Throws DataError that says what is wrong if the text is no JSON, or lacks what this page needs.
DocSection plan_section(std::string_view text, const std::string& name);

}  // namespace trireme
