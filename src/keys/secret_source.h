// Reads secrets that people choose, such as passphrases and PINs, from files or from the terminal.
// They never come from the command line or the environment, which other users and core files show.
#pragma once

#include <filesystem>
#include <string_view>

#include "src/keys/secret.h"

namespace trireme {

// Returns the first line of a file, without its line end. what: such as "a passphrase". Throws what
// PrivateFile throws, and DataError for an empty line.
Secret read_secret_line(const std::filesystem::path& path, std::string_view what);

// Throws ConfigError, which ends with the advice, unless this process can ask on a terminal: it has
// one, and is in its foreground.
void check_terminal(std::string_view advice);
// Asks on the terminal of this process (/dev/tty) and returns the line that is typed, which is not
// shown and may be empty. Throws ConfigError like check_terminal(), and if the user cancels.
Secret ask_secret(std::string_view prompt, std::string_view advice);

}  // namespace trireme
