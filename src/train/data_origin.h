// Where the data of a step came from, for people: of the micro-batches whose loss was largest the
// samples, their tokens in which shard, and the documents. Reads the shards' tables of documents.
#pragma once

#include <string>
#include <vector>

#include "io/data/dataset.h"
#include "io/data/sampler.h"
#include "src/train/run/run_config.h"

namespace trireme {

// One line a micro-batch, at most `most`. batch: number of the global batch in the data order.
// micro_losses: sum of the token losses of each micro-batch of it, nats. Not collective; a shard
// that can't be read costs the names of its documents.
std::vector<std::string> data_origin(const Dataset& dataset, const Sampler& sampler,
                                     const RunConfig& config, std::int64_t batch,
                                     const std::vector<double>& micro_losses, std::size_t most);

}  // namespace trireme
