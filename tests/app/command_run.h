// Runs a command of the program in this process, as main() does, and returns what it printed and
// the exit code.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/app/command/command_line.h"
#include "src/base/error.h"

namespace trireme {

struct CommandRun {
  int code = 0;
  std::string out;
  std::string err;  // what the command printed, followed by the message of its error
};

// add: adds the command to the program's command line. It may keep a reference to the exit code.
inline CommandRun run_command_line(const std::function<void(CommandLine& app, int& exit_code)>& add,
                                   const std::vector<std::string>& words) {
  CommandRun run;
  CommandLine app("", "trireme");
  std::string message;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    add(app, run.code);
    app.parse(words);
  } catch (const Error& error) {
    run.code = static_cast<int>(error.exit_code());
    message = error.what();
  }
  run.out = testing::internal::GetCapturedStdout();
  run.err = testing::internal::GetCapturedStderr() + message;
  return run;
}

}  // namespace trireme
