// `trireme plan CONFIG`: ranks the layouts of a run on a cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/app/command/command_line.h"

namespace trireme {

// LayoutOptions holds the arguments as typed.
struct LayoutOptions {
  std::string config;
  std::vector<std::string> arguments;
  std::filesystem::path cluster;
  std::vector<int> nodes;
  int top = 10;
  bool explain = false;
  std::string why_not;
  std::string out;
  std::string html;
  bool json = false;
};

void add_layout_options(CommandLine& command, LayoutOptions& options);
// exit_code: set if no layout fits.
void plan_run(const LayoutOptions& options, int& exit_code);

}  // namespace trireme
