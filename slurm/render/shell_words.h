// Text from people, made safe for a bash script. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// One word of bash that stands for exactly these bytes (no NUL): plain where it can be, else
// 'quoted', else $'escaped'.
std::string shell_word(std::string_view text);
// Several, with blanks between.
std::string shell_words(const std::vector<std::string>& texts);
// For a comment: one line, whatever the text is.
std::string shell_comment(std::string_view text);

// A value of an #SBATCH line, which no shell reads: ConfigError, naming `what`, unless it consists
// of letters, digits and . _ - + : , = / @ % [ ] *
const std::string& sbatch_value(const std::string& what, const std::string& text);
// A name that may stand there: other characters become '_'.
std::string sbatch_name(std::string_view text);

}  // namespace trireme
