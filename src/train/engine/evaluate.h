// Held-out loss: the mean over the tokens of the first samples of a dataset, spread over the ranks
// of a group by micro-batch and summed in micro-batch order, so that every layout gives the same
// bits.
#pragma once

#include <functional>

#include "io/data/dataset.h"
#include "io/data/loader.h"
#include "mpi/communicator.h"
#include "src/nn/model.h"

namespace trireme {

struct Evaluation {
  double loss = 0;  // nats a token
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
};

struct EvaluationPlan {
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;  // samples
  std::int64_t max_samples = 0;  // fewer where the dataset has fewer
};

// Takes the next `count` micro-batches, of `batch` samples each, from the loader; writes the sum of
// each one's token losses, or leaves the zeros where another rank has them.
using LossesOf =
    std::function<void(Loader& loader, std::int64_t batch, std::int64_t count, double* losses)>;
// Of a whole model on this rank.
LossesOf losses_of(const Model& model, Run& run);

// The mean is that of the losses which the ranks of `comm` found. DataError if the dataset holds no
// sample of that length.
Evaluation evaluate(const Dataset& dataset, const EvaluationPlan& plan, Communicator& comm,
                    const LossesOf& losses_of);

}  // namespace trireme
