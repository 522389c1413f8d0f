// What the tests of `trireme compare` and `trireme history` share: it starts the two commands on
// documents that it writes into a folder of its own.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/study/compare_command.h"
#include "src/app/study/history_command.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {

class StudyFolder : public testing::Test {
 protected:
  static CommandRun run(const std::vector<std::string>& words) {
    return run_command_line(
        [](CommandLine& app, int& exit_code) {
          add_compare_command(app, exit_code);
          add_history_command(app, exit_code);
        },
        words);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  // Returns the path of the file that holds the document.
  std::string save(const std::string& name, const nlohmann::json& document) const {
    std::ofstream(path(name)) << document.dump();
    return path(name);
  }

  TempFolder folder_;
};

}  // namespace trireme
