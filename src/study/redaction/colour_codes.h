// Removes the colour codes of terminals, which hide names from a search. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Removes codes such as "\033[31m" (ECMA-48, select graphic rendition), also those that are written
// as an escape, such as "\u001b[31m" in JSON that was cut off.
std::string without_colours(std::string_view text);

}  // namespace trireme
