// `trireme man`: manual pages, made from the same descriptions that --help shows.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "src/app/command_line.h"

namespace trireme {

void add_man_command(CommandLine& app);

// The pages of the program, of each of its commands and of the configuration: {"trireme-data.1":
// roff}. A command's own commands stand on its page.
std::map<std::string, std::string> man_pages(const CommandLine& app);

}  // namespace trireme
