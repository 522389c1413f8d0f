// KeyChoice is the option --key of commands that read encrypted checkpoints and datasets.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "src/app/command/command_line.h"
#include "src/keys/keyed_text_reader.h"
#include "src/policy/access.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct KeyChoice {
  std::vector<std::string> uris;
  // Asked whether a run may be read before its encrypted logs are opened. May be empty.
  AccessSource access = {};

  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
  // Returns the keys of the command line, or else those of the site's files and the environment.
  KeyOptions options() const;
  // Returns a reader that opens encrypted logs with these keys.
  KeyedTextReader reader() const;
};

}  // namespace trireme
