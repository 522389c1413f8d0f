// Describes results of `trireme bench` in a section of a report, from a file of
// benchmarks/schema/. Files may be damaged, of another version or hostile.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/report/document.h"

namespace trireme {

// Returns whether a text looks like results of trireme bench, whole or not.
bool looks_like_bench(std::string_view text);
// Throws DataError that says what is wrong if the text is no JSON, or lacks what this page needs.
DocSection bench_section(std::string_view text, const std::string& name);

}  // namespace trireme
