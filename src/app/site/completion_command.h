// `trireme completion bash|zsh`: scripts that complete commands and options, made from the same
// descriptions that --help shows.
#pragma once

#include <string>

#include "src/app/command_line.h"

namespace trireme {

void add_completion_command(CommandLine& app);

// Pure functions of the command line's definition.
std::string bash_completion(const CommandLine& app);
std::string zsh_completion(const CommandLine& app);

}  // namespace trireme
