#include "src/train/start/open_dataset.h"

#include <algorithm>
#include <optional>

#include <sys/resource.h>

#include "io/data/dataset_keys.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/log.h"
#include "src/train/run/access_check.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace {

// At most this part of the validation set is read at the start, which takes a fraction of a second.
constexpr std::int64_t kCheckedBytes = std::int64_t{64} << 20;

// Reads the first samples as an evaluation will; the reads compare their digests.
void check_first_samples(const Dataset& dataset, std::int64_t sequence, std::int64_t samples) {
  const SampleIndex index(dataset.manifest(), sequence);
  const std::int64_t sample_bytes = (sequence + 1) * dataset.manifest().token_bytes;
  const std::int64_t checked =
      std::min({samples, index.samples(), std::max(kCheckedBytes / sample_bytes, std::int64_t{1})});
  std::vector<std::byte> scratch;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence + 1));
  for (std::int64_t sample = 0; sample < checked; ++sample) {
    dataset.read(index.locate(sample), tokens, scratch);
  }
}

// Lets this process open `files` files, as far as the hard limit allows. Returns how many it may
// open.
std::size_t raise_open_files(std::size_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return RLIM_INFINITY;
  }
  if (limit.rlim_cur < files) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = std::min<rlim_t>(files, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      limit.rlim_cur = before;
    }
  }
  return limit.rlim_cur;
}

}  // namespace

void check_vocabulary(const Dataset& dataset, std::int64_t vocab) {
  const DatasetManifest& manifest = dataset.manifest();
  if (manifest.vocab > vocab) {
    throw ConfigError(fmt::format(
        "{} was packed with the tokenizer '{}' of {} ids, but model.vocab is {}: raise "
        "it to {}, or pack with another tokenizer",
        dataset.folder().string(), manifest.tokenizer, manifest.vocab, vocab, manifest.vocab));
  }
}

void check_same_tokenizer(const std::string& key, const Dataset& dataset,
                          const std::string& train_key, const Dataset& train) {
  const TokenizerIdentity own = tokenizer_of(dataset.manifest());
  if (const auto trained = tokenizer_of(train.manifest()); !same_tokenizer(own, trained)) {
    throw ConfigError(fmt::format(
        "{} {} was made with the tokenizer {}, but {} {} with {}: the same ids mean different text "
        "in them; pack both with the same tokenizer",
        key, dataset.folder().string(), describe(own), train_key, train.folder().string(),
        describe(trained)));
  }
}

std::string lack_of_open_files(const std::filesystem::path& folder, std::size_t shards,
                               std::size_t most_files) {
  constexpr std::size_t kOthers = 32;  // logs, libraries, connections
  if (shards + kOthers <= most_files) {
    return "";
  }
  return fmt::format(
      "{}: a run keeps {} shards open, and about {} other files, but a process on {} may open only "
      "{}: raise the limit (ulimit -n), or pack the dataset into fewer shards",
      folder.string(), shards, kOthers, host_name(), most_files);
}

PolicyError plain_dataset_refused(const std::filesystem::path& folder) {
  return PolicyError(fmt::format(
      "{0}: the dataset is not encrypted, but encryption.keys asks for encryption: encrypt it with "
      "`trireme data encrypt {0}`, or if you want to read it as it is, set "
      "encryption.accept_plain_data=true",
      folder.string()));
}

void unlock_dataset(DatasetManifest& manifest, const std::filesystem::path& folder,
                    SharedKeys& keys) {
  if (!manifest.is_encrypted()) {
    return;
  }
  std::string damage;
  std::optional<DataKey> key = keys.open_from(
      0, [&] { return to_text(read_dataset_keys(folder, manifest)); }, manifest.seal,
      (folder / kKeysFileName).string(), damage);
  if (!key) {
    throw DataError(damage);
  }
  set_key(manifest, std::make_shared<const DataKey>(std::move(*key)), folder);
}

Dataset open_dataset(const std::filesystem::path& folder, std::int64_t vocab, Communicator& comm,
                     const DatasetKeys& keys, std::size_t other_shards) {
  const std::string text = run_on_root(comm, [&] {
    std::string manifest = read_manifest_text(folder);
    Dataset(folder, manifest).check_sizes();
    return manifest;
  });
  fault("data.open");
  DatasetManifest manifest = parse_dataset_manifest(text, (folder / kDatasetManifestName).string());
  if (keys.access != nullptr) {
    check_on_all_ranks(*keys.access, {Deed::read, Thing::dataset, folder, manifest.label}, comm);
    if (keys.deed) {
      check_on_all_ranks(*keys.access, {*keys.deed, Thing::dataset, folder, manifest.label}, comm);
    }
  }
  if (manifest.is_encrypted()) {
    std::optional<SharedKeys> none;
    unlock_dataset(
        manifest, folder,
        keys.keys == nullptr ? none.emplace(comm, std::vector<std::string>()) : *keys.keys);
  } else if (keys.keys != nullptr && !keys.keys->empty() && !keys.accept_plain) {
    throw plain_dataset_refused(folder);
  }
  Dataset dataset(folder, text, std::move(manifest));
  check_vocabulary(dataset, vocab);
  // Each Dataset raises the limit for its own shards only.
  constexpr std::size_t kOthers = 256;
  const std::size_t shards = dataset.manifest().shards.size() + other_shards;
  const std::string lack =
      gather_faults(comm, lack_of_open_files(folder, shards, raise_open_files(shards + kOthers)));
  if (!lack.empty()) {
    throw ConfigError(lack);
  }
  return dataset;
}

Dataset open_validation(const RunConfig& config, const EvaluationSet& set, const Dataset& train,
                        Communicator& comm, const DatasetKeys& keys, std::size_t other_shards) {
  Dataset dataset = open_dataset(set.path, config.model.vocab, comm, keys, other_shards);
  const DataConfig& data = config.data;
  check_same_tokenizer(set.key(data.validation.size()), dataset,
                       data.train.front().key(data.train.size()), train);
  run_on_root(comm, [&] {
    // Use a separate Dataset, so that the one that evaluates compares the digests again at its
    // first read.
    const Dataset checked(dataset.folder(), manifest_text(dataset.manifest()), dataset.manifest());
    check_first_samples(checked, config.data.sequence, config.train.eval_samples);
    return std::string();
  });
  return dataset;
}

}  // namespace trireme
