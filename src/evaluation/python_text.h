// The functions of Python's str with which lm-evaluation-harness forms texts. Texts are valid
// UTF-8. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Returns whether str.isspace() holds for the character.
bool is_python_space(char32_t code);
// str.strip() and str.rstrip().
std::string_view python_strip(std::string_view text);
std::string_view python_rstrip(std::string_view text);
// str.capitalize(), with letters that change into one letter each: "ß" stays as it is. Throws
// ConfigError if the text is not ASCII and the system has no locale C.UTF-8.
std::string python_capitalized(std::string_view text);
// str.replace().
std::string python_replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace trireme
