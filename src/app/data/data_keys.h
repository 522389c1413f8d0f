// The keys of `trireme data`: for whom new datasets are encrypted, and what opens those that are.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/data/dataset_keys.h"
#include "io/keys/shared_keys.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/command_line.h"

namespace trireme {

// The options --key and --plain of commands that write datasets.
struct RecipientChoice {
  std::vector<std::string> uris;
  bool plain = false;

  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
  // Returns the keys of the command line, or else those of the site's files and the environment;
  // none if the dataset is not to be encrypted. Throws ConfigError for --key with --plain.
  std::vector<std::string> keys() const;
};

// Throws PolicyError if --key was given for a dataset that is not encrypted: somebody may have
// replaced an encrypted one.
void check_named_keys(const DatasetManifest& manifest, const KeyChoice& keys,
                      const std::filesystem::path& folder);

// Returns what makes or opens the keys of datasets for all ranks. Both arguments must outlive it.
DatasetKeyMaker dataset_key_maker(SharedKeys& keys, Communicator& comm);

}  // namespace trireme
