// Quotes text from users for a bash script. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Returns a word that bash reads as exactly these bytes (no NUL): plain if possible, otherwise
// 'quoted' or $'escaped'.
std::string shell_word(std::string_view text);
// Quotes several words and joins them with blanks.
std::string shell_words(const std::vector<std::string>& texts);
// Makes any text fit into a comment of one line.
std::string shell_comment(std::string_view text);

// Returns the value unchanged for an #SBATCH line, which no shell interprets. Throws a ConfigError
// that names `what` unless the value consists of letters, digits and . _ - + : , = / @ % [ ] *
const std::string& sbatch_value(const std::string& what, const std::string& text);
// Replaces characters that are not allowed in an #SBATCH line by '_'.
std::string sbatch_name(std::string_view text);

}  // namespace trireme
