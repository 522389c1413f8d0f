#include "src/train/start/training_data.h"

#include "src/base/check.h"
#include "src/base/digest.h"

namespace trireme {
namespace {

// Sources have different orders although data.seed is one. The first has the order that it would
// have alone.
std::uint64_t seed_of(std::uint64_t seed, std::size_t source) {
  return source == 0 ? seed : mix64(seed + mix64(source));
}

}  // namespace

std::string digest_of_all(const std::vector<std::string>& digests) {
  if (digests.size() == 1) {
    return digests.front();
  }
  std::string lines;
  for (const std::string& each : digests) {
    lines += each + "\n";
  }
  return "sha256:" + sha256_hex(lines);
}

TrainingData::TrainingData(const RunConfig& config, std::vector<Dataset> datasets)
    : datasets_(std::move(datasets)) {
  const DataConfig& data = config.data;
  check(datasets_.size() == data.train.size() && !datasets_.empty(), "each source has a dataset");
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    const Dataset& dataset = datasets_[i];
    keys_.push_back(data.train[i].key(data.train.size()));
    check_same_tokenizer(keys_[i], dataset, keys_[0], datasets_[0]);
    samples_.push_back(dataset.samples(data.sequence));
    samplers_.emplace_back(samples_[i],
                           shuffle_block_samples(data.sequence, dataset.manifest().token_bytes),
                           parse_shuffle(data.shuffle), seed_of(data.seed, i));
  }
  mixture_ = mixture_of(data.train, samples_, config.batches());
  if (config.batches().has_room_for(config.train.steps)) {
    check_epochs(data.train, samples_, mixture_, config.batches().before(config.train.steps));
  }
}

std::vector<LoaderSource> TrainingData::sources() const {
  std::vector<LoaderSource> sources;
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    sources.push_back({datasets_[i], samplers_[i]});
  }
  return sources;
}

std::string TrainingData::digest() const {
  std::vector<std::string> digests;
  for (const Dataset& dataset : datasets_) {
    digests.push_back(dataset.manifest().digest());
  }
  return digest_of_all(digests);
}

std::size_t TrainingData::shards() const {
  std::size_t shards = 0;
  for (const Dataset& dataset : datasets_) {
    shards += dataset.manifest().shards.size();
  }
  return shards;
}

std::vector<UsedDataset> TrainingData::used() const {
  std::vector<UsedDataset> used;
  for (std::size_t i = 0; i < datasets_.size(); ++i) {
    const Dataset& dataset = datasets_[i];
    used.push_back(
        {keys_[i], dataset.folder(), dataset.manifest_sha256(), dataset.manifest().label});
  }
  return used;
}

TrainingData open_training_data(const RunConfig& config, Communicator& comm,
                                const DatasetKeys& keys) {
  std::vector<Dataset> datasets;
  std::size_t shards = 0;
  for (const DataSource& source : config.data.train) {
    datasets.push_back(open_dataset(source.path, config.model.vocab, comm, keys, shards));
    shards += datasets.back().manifest().shards.size();
  }
  return {config, std::move(datasets)};
}

}  // namespace trireme
