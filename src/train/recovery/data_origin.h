// Describes where the data of a step came from, for messages: for the micro-batches with the
// largest losses, the samples, the shards and tokens in which they are, and the documents. Reads
// the document tables of the shards.
#pragma once

#include <string>
#include <vector>

#include "src/train/run/run_config.h"
#include "src/train/start/training_data.h"

namespace trireme {

// Returns at most `most` lines, one per micro-batch. `batch` is the number of the global batch in
// the data order. micro_losses: sum of the token losses of each of its micro-batches, in nats. Not
// collective. If a shard can't be read, only its documents remain unknown.
std::vector<std::string> data_origin(const TrainingData& data, const RunConfig& config,
                                     std::int64_t batch, const std::vector<double>& micro_losses,
                                     std::size_t most);

}  // namespace trireme
