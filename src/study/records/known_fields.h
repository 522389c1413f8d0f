// What the files of runs, benchmarks and studies say by the formats of this program: the names of
// their fields, and the words that stand for choices. All of it is public, because it stands in
// this program's schemas and pages; anything else in such a file comes from the site. Pure
// functions.
#pragma once

#include <string_view>
#include <vector>

namespace trireme {

// Returns whether a format has such a field, such as "step_ms".
bool is_known_field(std::string_view name);
// Returns whether a known field may hold figures, unlike one that names a key.
bool holds_figures(std::string_view name);
// Returns whether a format has such a choice, such as "bf16" for `train.precision`.
bool is_known_word(std::string_view word);

// What the texts in a field, and in all fields below it, name. Such a text may be any word, also
// one that is_known_word().
enum class Naming { nothing, hosts, others };
Naming named_by(std::string_view field);

// Returns whether a text is like its shape, in which 0 stands for any digit.
bool is_shaped(std::string_view text, std::string_view shape);
// Returns whether a file or a folder of this name, without its suffix, is one that the program
// writes, such as "metrics" or "rank-00005".
bool is_known_file(std::string_view stem);

// The JSON schemas of benchmarks and studies.
const std::vector<std::string_view>& public_schemas();

}  // namespace trireme
