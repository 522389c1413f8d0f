// Held-out loss: the mean over the tokens of the first samples of a dataset, spread over the ranks
// of a group by micro-batch and summed in micro-batch order, so that every layout gives the same
// bits.
#pragma once

#include <functional>
#include <string>

#include "io/data/dataset.h"
#include "io/data/loader.h"
#include "mpi/communicator.h"
#include "src/nn/model.h"

namespace trireme {

struct Evaluation {
  double loss = 0;  // nats a token
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  // Why this rank could not read its samples; then the loss means nothing. Empty: it could.
  std::string fault = {};
  bool is_io_fault = false;
};

struct EvaluationPlan {
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;  // samples
  std::int64_t max_samples = 0;  // fewer where the dataset has fewer
};

// Returns one micro-batch after the other, as Loader::next() does.
using TokenSource = std::function<LoadedMicroBatch()>;
// Takes the next `count` micro-batches, of `batch` samples each, from the source; writes the sum of
// each one's token losses, or leaves the zeros where another rank has them.
using LossesOf = std::function<void(const TokenSource& tokens, std::int64_t batch,
                                    std::int64_t count, double* losses)>;
// Of a whole model on this rank.
LossesOf losses_of(const Model& model, Run& run);

// The mean of the losses that the ranks of `comm` found. DataError if the dataset holds no sample
// of that length. A rank that can't read its samples computes with zeros instead, so that it still
// meets the others in every collective, and says so in the result: pass it to check_samples_read().
Evaluation evaluate(const Dataset& dataset, const EvaluationPlan& plan, Communicator& comm,
                    const LossesOf& losses_of);
// DataError or IoError, on all ranks of `comm` alike, if any of them could not read its samples.
void check_samples_read(const Evaluation& evaluation, Communicator& comm);

}  // namespace trireme
