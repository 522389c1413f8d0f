// DataSource is one dataset of data.train, with its part in the mixture; EvaluationSet is one of
// data.validation. Both keys take a path, or a list:
//
//   data:
//     train:
//       - {path: data/web/train, weight: 3}
//       - {name: books, path: data/books/train, weight: {0: 1, 20000: 4}, epochs: 2}
//     validation: [{name: web, path: data/web/validation}, data/books/validation]
//
// Plain values and pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/data/batch_schedule.h"
#include "io/data/mixture.h"
#include "src/base/config_binder.h"

namespace trireme {

// A weight that applies from a step on. Steps are counted from 0, in batches of the data order.
struct WeightStep {
  std::int64_t step = 0;
  double weight = 0;
};

struct DataSource {
  std::string name;  // unique; in metrics
  std::filesystem::path path;
  std::vector<WeightStep> weights;  // by rising step, the first of which is 0; empty: by its size
  std::int64_t epochs = 0;          // that a run may take of it; 0: any number

  // Returns the configuration key of a source, for messages and provenance: "data.train", or
  // "data.train.NAME" if there are several.
  std::string key(std::size_t sources) const;
};

struct EvaluationSet {
  std::string name;
  std::filesystem::path path;
  std::string key(std::size_t sets) const;
};

using Mappings = std::vector<std::vector<ConfigEntry>>;
// Read the items of data.train and of data.validation. Everything wrong is refused in the binder.
std::vector<DataSource> read_data_sources(ConfigBinder& binder, const Mappings& items);
std::vector<EvaluationSet> read_evaluation_sets(ConfigBinder& binder, const Mappings& items);

// Returns the mixture of a run. samples: of each source, in one epoch. Sources without weights get
// the number of samples in their epochs (one epoch if they may have any number). Throws ConfigError
// if these are too many.
Mixture mixture_of(const std::vector<DataSource>& sources, const std::vector<std::int64_t>& samples,
                   const BatchSchedule& batches);
// Throws ConfigError if the first `end_sample` samples of the run take more from a source than its
// `epochs` allow; the error names that source.
void check_epochs(const std::vector<DataSource>& sources, const std::vector<std::int64_t>& samples,
                  const Mixture& mixture, std::int64_t end_sample);
// Describes the weights and names for the fingerprint of a run, as "web 3, books 0:1 20000:4"; ""
// for one source.
std::string mixture_text(const std::vector<DataSource>& sources);

}  // namespace trireme
