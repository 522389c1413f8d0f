// say() prints a line for people on standard error.
#pragma once

#include <string_view>

namespace trireme {

// Writes the line in one piece and makes it printable, because it may quote files and remote peers.
// If it can't be written, because of a full disk or a closed pipe, it is lost without an error.
void say(std::string_view line) noexcept;

}  // namespace trireme
