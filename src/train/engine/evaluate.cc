#include "src/train/engine/evaluate.h"

#include <algorithm>
#include <vector>

#include "io/data/loader.h"
#include "src/train/engine/train_step.h"

namespace trireme {

namespace {

// Micro-batches [first, first + count) of `batch` samples each; appends their losses.
struct Span {
  std::int64_t batch;  // samples a micro-batch
  std::int64_t first_sample;
  std::int64_t count;  // micro-batches
};

void evaluate_span(const Dataset& dataset, std::int64_t sequence, const Span& span,
                   const LossesOf& losses_of, double* losses) {
  if (span.count <= 0) {
    return;
  }
  const Sampler in_order(dataset.samples(sequence), 1, Shuffle::none, 0);
  // A micro-batch a step: the loader's memory does not grow with the dataset.
  Loader loader(dataset, in_order,
                {.sequence = sequence,
                 .global_batch = span.batch,
                 .micro_batch = span.batch,
                 .micros = {0},
                 .steps = span.count},
                span.first_sample);
  losses_of(loader, span.batch, span.count, losses);
}

}  // namespace

LossesOf losses_of(const Model& model, Run& run) {
  return [&model, &run](Loader& loader, std::int64_t, std::int64_t count, double* losses) {
    for (std::int64_t m = 0; m < count; ++m) {
      const LoadedMicroBatch& loaded = loader.next();
      losses[m] = model.evaluate({loaded.batch, loaded.time, loaded.ids, loaded.targets}, run);
    }
  };
}

Evaluation evaluate(const Dataset& dataset, const EvaluationPlan& plan, Communicator& comm,
                    const LossesOf& losses_of) {
  const std::int64_t samples = std::min(dataset.samples(plan.sequence), plan.max_samples);
  const std::int64_t batch = std::min(plan.micro_batch, samples);
  const std::int64_t whole = samples / batch;  // micro-batches
  const std::int64_t rest = samples % batch;   // samples of one more, the last
  // Ranks that meet in every pass (ZeRO 3) have equally many: the last ones repeat some of others.
  const std::int64_t a_rank = (whole + comm.size() - 1) / comm.size();
  const std::int64_t first = std::min(a_rank * comm.rank(), whole - a_rank);
  std::vector<double> own(static_cast<std::size_t>(a_rank), 0.0);
  evaluate_span(dataset, plan.sequence, {batch, first * batch, a_rank}, losses_of, own.data());

  std::vector<double> losses(static_cast<std::size_t>(a_rank * comm.size()), 0.0);
  for (std::int64_t m = a_rank * comm.rank(); m < std::min(a_rank * (comm.rank() + 1), whole);
       ++m) {
    losses[static_cast<std::size_t>(m)] = own[static_cast<std::size_t>(m - first)];
  }
  comm.all_gather({losses.data(), static_cast<std::int64_t>(losses.size()), DType::f64, {}}).wait();
  losses.resize(static_cast<std::size_t>(whole));
  if (rest > 0) {
    losses.push_back(0);
    evaluate_span(dataset, plan.sequence, {rest, whole * batch, 1}, losses_of, &losses.back());
  }
  const std::int64_t tokens = samples * plan.sequence;
  return {sum_in_order(losses.data(), static_cast<std::int64_t>(losses.size())) /
              static_cast<double>(tokens),
          samples, tokens};
}

}  // namespace trireme
