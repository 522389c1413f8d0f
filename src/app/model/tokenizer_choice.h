// TokenizerChoice is the tokenizer with which a command reads and writes a model's text: files that
// the user names, those beside an imported model, or one that the program has.
#pragma once

#include <memory>
#include <string>

#include "io/data/tokenizer.h"
#include "src/app/command/command_line.h"
#include "src/train/load_model.h"

namespace trireme {

struct TokenizerChoice {
  std::string path;       // its files; empty for those beside the model, or the program's own
  std::string end_token;  // the token that ends a document; empty for the one the files name
  bool has_ids = false;   // whether the command has the option --ids

  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
  // Returns the path of the files to read, or "" for a tokenizer that the program has, or if none
  // are known. Throws DataError for damaged ones.
  std::string files_for(const LoadedModel& loaded) const;
  // ids: whether texts are token ids in decimal. Throws ConfigError if the tokenizer is not the one
  // with whose tokens the model was trained.
  std::unique_ptr<Tokenizer> open(const LoadedModel& loaded, bool ids) const;
};

}  // namespace trireme
