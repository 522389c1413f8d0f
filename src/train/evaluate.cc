#include "src/train/evaluate.h"

#include <algorithm>
#include <vector>

#include "io/data/loader.h"
#include "src/train/train_step.h"

namespace trireme {

Evaluation evaluate(const Model& model, const Dataset& dataset, const EvaluationPlan& plan,
                    Communicator& comm, Run& run) {
  const std::int64_t there = dataset.samples(plan.sequence);
  const std::int64_t batch = std::min({plan.micro_batch, plan.max_samples, there});
  // Whole micro-batches only: each token counts alike, whatever the number of ranks.
  const std::int64_t micro_batches = std::min(plan.max_samples, there) / batch;
  const std::int64_t a_rank = (micro_batches + comm.size() - 1) / comm.size();
  const std::int64_t first = std::min(a_rank * comm.rank(), micro_batches);
  const std::int64_t count = std::min(first + a_rank, micro_batches) - first;

  std::vector<double> losses(static_cast<std::size_t>(a_rank * comm.size()), 0.0);
  if (count > 0) {
    const Sampler in_order(there, 1, Shuffle::none, 0);
    // A micro-batch a step: the loader's memory does not grow with the dataset.
    Loader loader(dataset, in_order,
                  {.sequence = plan.sequence,
                   .global_batch = batch,
                   .micro_batch = batch,
                   .first_micro = 0,
                   .micros = 1,
                   .steps = count},
                  first * batch);
    for (std::int64_t m = first; m < first + count; ++m) {
      const LoadedMicroBatch& loaded = loader.next();
      losses[static_cast<std::size_t>(m)] =
          model.evaluate({loaded.batch, loaded.time, loaded.ids, loaded.targets}, run);
    }
  }
  comm.all_gather({losses.data(), static_cast<std::int64_t>(losses.size()), DType::f64, {}}).wait();
  const std::int64_t samples = batch * micro_batches;
  const std::int64_t tokens = samples * plan.sequence;
  return {sum_in_order(losses.data(), micro_batches) / static_cast<double>(tokens), samples,
          tokens};
}

}  // namespace trireme
