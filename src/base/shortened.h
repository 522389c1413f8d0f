// Keeps messages readable that repeat what a user wrote or a file holds, however long that is. Pure
// functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Replaces the middle of each word of more than 1000 bytes, and then the middle of a text of more
// than 16 KiB, by "...(N bytes)...", where N says how many are left out. Characters of UTF-8 stay
// whole.
std::string shortened(std::string_view text);

}  // namespace trireme
