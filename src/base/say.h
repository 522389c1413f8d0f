// say(): a line for people, on standard error.
#pragma once

#include <string_view>

namespace trireme {

// In one piece, made printable: it may quote files and remote peers. Where it can't be written, on
// a full disk or a closed pipe, it is lost: nothing may end for that.
void say(std::string_view line) noexcept;

}  // namespace trireme
