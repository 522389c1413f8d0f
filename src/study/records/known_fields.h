// What the files of runs, benchmarks and studies say by the formats of this program: the names of
// their fields, and the words that stand for choices. All of it is public, because it stands in
// this program's schemas and pages; anything else in such a file comes from the site. Pure
// functions.
#pragma once

#include <string_view>
#include <vector>

namespace trireme {

// What a field of the formats holds.
enum class FieldKind {
  unknown,          // no format has it
  figures,          // numbers, choices, or other fields
  numbers,          // the same, and numbers may stand in texts
  choice,           // one of the formats' words
  site_text,        // a text that the site has chosen, which may also be such a word, or digits
  host,             // names of hosts, likewise
  hosts_or_counts,  // names of hosts, or how many there are
  readings,         // numbers by names that are words of the formats, or chosen by the site
  map,              // numbers by names that the site has chosen
};
// parent: the name of the field that holds it, since `data.train` is a path, and `train` a section.
FieldKind kind_of_field(std::string_view name, std::string_view parent = "");
inline bool is_known_field(std::string_view name) {
  return kind_of_field(name) != FieldKind::unknown;
}

// Returns whether a format has such a choice, such as "bf16" for `train.precision`.
bool is_known_word(std::string_view word);

// Returns whether a text is like its shape, in which 0 stands for any digit.
bool is_shaped(std::string_view text, std::string_view shape);
// Returns whether a file or a folder of this name, without its suffix, is one that the program
// writes, such as "metrics" or "rank-00005".
bool is_known_file(std::string_view stem);

// The JSON schemas of benchmarks and studies.
const std::vector<std::string_view>& public_schemas();

}  // namespace trireme
