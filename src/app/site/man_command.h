// `trireme man` prints manual pages, which are made from the descriptions that --help shows.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "src/app/command/command_line.h"

namespace trireme {

void add_man_command(CommandLine& app);

// Returns the pages of the program, of each of its commands and of the configuration, such as
// {"trireme-data.1": roff}. The page of a command describes its subcommands.
std::map<std::string, std::string> man_pages(const CommandLine& app);

}  // namespace trireme
