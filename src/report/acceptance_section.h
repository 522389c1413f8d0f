// Describes what `trireme accept` found in a section of a report, from acceptance.json. The file
// may be damaged or hostile.
#pragma once

#include <string>
#include <string_view>

#include "src/report/document.h"

namespace trireme {

// Returns whether a text looks like acceptance.json, whole or not.
bool looks_like_acceptance(std::string_view text);
// Throws DataError that says what is wrong if the text is no JSON, or lacks what this page needs.
DocSection acceptance_section(std::string_view text, const std::string& name);

}  // namespace trireme
