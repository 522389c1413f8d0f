// `trireme completion bash|zsh|fish` prints scripts that complete commands and options. They are
// made from the descriptions that --help shows.
#pragma once

#include <string>

#include "src/app/command/command_line.h"

namespace trireme {

void add_completion_command(CommandLine& app);

// All are pure functions of the command line's definition.
std::string bash_completion(const CommandLine& app);
std::string zsh_completion(const CommandLine& app);
std::string fish_completion(const CommandLine& app);

}  // namespace trireme
