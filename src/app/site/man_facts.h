// Lists the parts of manual pages that --help does not show: environment variables, files and exit
// codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct ManEntry {
  std::string name;  // a variable, a file or an exit code
  std::string text;
};

// command: such as "train", or "" for the program.
std::vector<ManEntry> environment_of(std::string_view command);
std::vector<ManEntry> files_of(std::string_view command);
const std::vector<ManEntry>& exit_statuses();

}  // namespace trireme
