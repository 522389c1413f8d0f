// TokenizerChoice is the tokenizer with which a command reads and writes a model's text: files that
// the user names, or one that the program has.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "io/data/tokenizer.h"
#include "src/app/command/command_line.h"
#include "src/train/load_model.h"

namespace trireme {

struct TokenizerChoice {
  std::string path;       // its files; empty for a tokenizer that the program has
  std::string end_token;  // the token that ends a document; empty for the one the files name
  // The model's. An imported one does not say what its tokenizer is, but may hold its files.
  std::filesystem::path checkpoint = {};

  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
  // ids: whether texts are token ids in decimal. Throws ConfigError if the tokenizer is not the one
  // with whose tokens the model was trained.
  std::unique_ptr<Tokenizer> open(const LoadedModel& loaded, bool ids) const;
};

}  // namespace trireme
