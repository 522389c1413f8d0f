// The part of `trireme export` that writes a checkpoint as a model of another program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/app/access/key_choice.h"
#include "src/app/command/app_context.h"
#include "src/interchange/export.h"

namespace trireme {

struct ExportArguments {
  std::string checkpoint;
  std::string format;
  std::string out;
  std::string dtype;
  std::vector<std::string> releases;
  std::string sign;
  bool ema = false;
  bool plain = false;
  bool json = false;
  KeyChoice keys;
};

// Adds the options to `export`. The caller keeps the arguments until the command has run.
void add_model_export(CommandLine& command, ExportArguments& arguments);
void export_model(const ExportArguments& arguments, AppContext& context);

}  // namespace trireme
