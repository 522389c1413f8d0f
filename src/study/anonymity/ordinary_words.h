// Lists the words that are no names. Pure functions.
#pragma once

#include <string_view>

namespace trireme {

// Returns whether a word in small letters is never taken for the name of a host or a user, such as
// "none", this program's commands, such as "health", and the words of its configuration and
// figures, such as "data" and "loss".
bool is_ordinary_word(std::string_view word);

}  // namespace trireme
