// Opens a dataset on many ranks: rank 0 reads the manifest and checks the files, and broadcasts its
// text. Other ranks do not access the file system before they read the first sample. If it is
// encrypted, the first rank of each host opens its wrapped key (io/keys/shared_keys.h).
#pragma once

#include <filesystem>

#include "io/data/dataset.h"
#include "io/keys/shared_keys.h"
#include "mpi/communicator.h"
#include "src/base/error.h"
#include "src/train/run/run_config.h"

namespace trireme {

class Access;
enum class Deed;  // src/policy/access.h

// Throws ConfigError if the dataset's tokenizer has more ids than `vocab`, that of the model.
void check_vocabulary(const Dataset& dataset, std::int64_t vocab);

// Throws ConfigError if two different tokenizers made the datasets. The keys are those of the
// configuration.
void check_same_tokenizer(const std::string& key, const Dataset& dataset,
                          const std::string& train_key, const Dataset& train);

// Says how datasets are opened: with which keys, if they are encrypted, and under which policy.
struct DatasetKeys {
  SharedKeys* keys = nullptr;  // null on all ranks if there are none
  bool accept_plain = false;   // also open datasets that are not encrypted, although there are keys
  // Says what is allowed, by the policy of the site; null on all ranks if nothing is checked.
  const Access* access = nullptr;
  // What is done with the dataset besides reading it.
  std::optional<Deed> deed = std::nullopt;
};

// Collective, with the same manifest on all ranks. Gives an encrypted manifest its key. Every rank
// throws PolicyError if no key opens it, or DataError if it or keys.json was changed.
void unlock_dataset(DatasetManifest& manifest, const std::filesystem::path& folder,
                    SharedKeys& keys);

// Collective. Every rank throws the error that rank 0 met, or that of check_vocabulary() or
// unlock_dataset(). Throws PolicyError if the site's policy forbids it, before anything but the
// manifest is read, or if the dataset is not encrypted, but has to be, and
// ConfigError if a rank may not open all shards at once, besides `other_shards` of another dataset.
Dataset open_dataset(const std::filesystem::path& folder, std::int64_t vocab, Communicator& comm,
                     const DatasetKeys& keys = {}, std::size_t other_shards = 0);
// Returns the refusal of a dataset that is not encrypted although there are keys.
PolicyError plain_dataset_refused(const std::filesystem::path& folder);
// Returns what is wrong if a run keeps `shards` files open in a process that may open `most_files`,
// or "".
std::string lack_of_open_files(const std::filesystem::path& folder, std::size_t shards,
                               std::size_t most_files);

// Opens a validation set of a run that trains on `train`. Collective. In addition to the checks of
// open_dataset(), throws DataError if the set holds no sample of data.sequence or if the samples of
// an evaluation are damaged (rank 0 reads the first 64 MiB of them), and ConfigError if it was made
// with another tokenizer. other_shards: of all other datasets.
Dataset open_validation(const RunConfig& config, const EvaluationSet& set, const Dataset& train,
                        Communicator& comm, const DatasetKeys& keys = {},
                        std::size_t other_shards = 0);

}  // namespace trireme
