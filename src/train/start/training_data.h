// TrainingData is what a run trains on: the datasets of data.train, open for reading, and the order
// of their samples. Owned by TrainingParts; any thread may read.
#pragma once

#include <string>
#include <vector>

#include "io/data/loader.h"
#include "src/train/run/used_dataset.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {

// Returns the digest of the training data of a run, from those of its datasets: that of the only
// one, or one over all of them, in their order.
std::string digest_of_all(const std::vector<std::string>& digests);

class TrainingData {
 public:
  // datasets: of config.data.train, in that order. Throws DataError if one has no sample of
  // data.sequence, and ConfigError if they have different tokenizers or the run takes more of one
  // than its epochs allow.
  TrainingData(const RunConfig& config, std::vector<Dataset> datasets);

  std::size_t count() const { return datasets_.size(); }
  const Dataset& operator[](std::size_t source) const { return datasets_[source]; }
  const Mixture& mixture() const { return mixture_; }
  // Returns the datasets with their samplers, which refer to this object.
  std::vector<LoaderSource> sources() const;
  // Returns the number of samples that a source has in one epoch.
  std::int64_t samples(std::size_t source) const { return samples_[source]; }

  std::string digest() const;
  TokenizerIdentity tokenizer() const { return tokenizer_of(datasets_.front().manifest()); }
  std::size_t shards() const;
  std::vector<UsedDataset> used() const;

 private:
  std::vector<std::string> keys_;
  std::vector<Dataset> datasets_;
  std::vector<Sampler> samplers_;
  std::vector<std::int64_t> samples_;
  Mixture mixture_;
};

// Opens all datasets of data.train. Collective. Throws what open_dataset() and TrainingData throw.
TrainingData open_training_data(const RunConfig& config, Communicator& comm,
                                const DatasetKeys& keys = {});

}  // namespace trireme
