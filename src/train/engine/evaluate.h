// Computes the held-out loss: the mean loss over the tokens of the first samples of a dataset that
// count (its loss mask says which, if it has one). The
// ranks of a group divide the micro-batches, and the losses are summed in micro-batch order, so
// that every layout gives the same bits.
#pragma once

#include <functional>
#include <string>

#include "io/data/dataset.h"
#include "io/data/loader.h"
#include "mpi/communicator.h"
#include "src/nn/model.h"

namespace trireme {

struct Evaluation {
  double loss = 0;  // mean, in nats per token
  std::int64_t samples = 0;
  // Over which the mean is taken: all tokens, unless the dataset has a loss mask. 0 on ranks that
  // read none.
  std::int64_t tokens = 0;
  // Says why this rank could not read its samples, so that the loss is meaningless; or empty.
  std::string fault = {};
  bool is_io_fault = false;
};

struct EvaluationPlan {
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;  // samples
  std::int64_t max_samples = 0;  // at most; fewer if the dataset has fewer
  // The most micro-batches that LossesOf takes before it ends the lease of the first.
  std::int64_t in_flight = 1;
  // Memory of the host for their tokens, as in LoaderPlan: DeviceContext::staging().
  Pool* memory = nullptr;
  bool separates_documents = false;  // as in LoaderPlan
};

// Returns one micro-batch after another, as Loader::next() does: ids and targets stay as they are
// until the lease ends, or as long as the source lives if there is no lease.
using TokenSource = std::function<LoadedMicroBatch()>;
// Takes the next `count` micro-batches, of `batch` samples each, from the source, and writes the
// sum of each one's token losses to losses [count]; leaves them at zero if another rank computes
// them.
using LossesOf = std::function<void(const TokenSource& tokens, std::int64_t batch,
                                    std::int64_t count, double* losses)>;
// Returns a function that computes the losses with a whole model on this rank.
LossesOf losses_of(const Model& model, Run& run);

// Returns the mean of the losses that the ranks of `comm` computed. Throws DataError if the dataset
// has no sample of that length. A rank that cannot read its samples computes with zeros instead, so
// that it takes part in every collective, and sets `fault` in the result: pass that to
// check_samples_read().
Evaluation evaluate(const Dataset& dataset, const EvaluationPlan& plan, Communicator& comm,
                    const LossesOf& losses_of);
// Throws DataError or IoError, on all ranks of `comm` alike, if one of them could not read its
// samples. Collective.
void check_samples_read(const Evaluation& evaluation, Communicator& comm);

}  // namespace trireme
