// Held-out loss: the mean over the tokens of the first samples of a dataset, spread over the ranks
// of a group by micro-batch and summed in micro-batch order, so that every layout gives the same
// bits.
#pragma once

#include "io/data/dataset.h"
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

// DataError if the dataset holds no sample of that length.
Evaluation evaluate(const Model& model, const Dataset& dataset, const EvaluationPlan& plan,
                    Communicator& comm, Run& run);

}  // namespace trireme
