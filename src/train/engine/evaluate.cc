#include "src/train/engine/evaluate.h"

#include <algorithm>
#include <vector>

#include "io/data/loader.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/ignored_target.h"
#include "src/nn/device_tokens.h"

namespace trireme {

namespace {

// Span is a series of consecutive micro-batches of `batch` samples each, from first_sample on.
struct Span {
  std::int64_t batch;  // samples per micro-batch
  std::int64_t first_sample;
  std::int64_t count;      // micro-batches
  std::int64_t in_flight;  // as in EvaluationPlan
};

// MicroResult is what a rank knows about a micro-batch: the sum of its token losses, and how many
// of its targets count.
struct MicroResult {
  double loss = 0;
  double counted = 0;
};

void evaluate_span(const Dataset& dataset, const EvaluationPlan& plan, const Span& span,
                   const LossesOf& losses_of, MicroResult* results, Evaluation& result) {
  if (span.count <= 0) {
    return;
  }
  const std::int64_t sequence = plan.sequence;
  const Sampler in_order(dataset.samples(sequence), 1, Shuffle::none, 0);
  // Each micro-batch is a step of the loader, so that its memory does not grow with the dataset. It
  // has memory for depth_steps micro-batches and one more, of which in_flight may be leased.
  Loader loader(dataset, in_order,
                {.sequence = sequence,
                 .batches = span.batch,
                 .micro_batch = span.batch,
                 .micros = [](std::int64_t) { return std::vector<std::int64_t>{0}; },
                 .steps = span.count,
                 .depth_steps = std::max<std::int64_t>(2, span.in_flight),
                 .memory = plan.memory,
                 .separates_documents = plan.separates_documents},
                span.first_sample);
  std::vector<std::int32_t> zeros;
  std::int64_t next = 0;
  const auto tokens = [&]() -> LoadedMicroBatch {
    const std::int64_t m = next++;
    try {
      if (result.fault.empty()) {
        LoadedMicroBatch loaded = loader.next();
        results[m].counted = static_cast<double>(
            counted_targets(as<std::int32_t>(loaded.targets), loaded.targets.count));
        return loaded;
      }
    } catch (const Error& error) {
      result.fault = error.what();
      result.is_io_fault = error.exit_code() == ExitCode::io;
    }
    zeros.resize(static_cast<std::size_t>(span.batch * sequence));
    const ConstView none{zeros.data(), span.batch * sequence, DType::i32};
    return {span.first_sample, span.batch, sequence, none, none, nullptr};
  };
  std::vector<double> losses(static_cast<std::size_t>(span.count), 0.0);
  losses_of(tokens, span.batch, span.count, losses.data());
  for (std::int64_t m = 0; m < span.count; ++m) {
    results[m].loss = losses[static_cast<std::size_t>(m)];
  }
}

}  // namespace

LossesOf losses_of(const Model& model, Run& run) {
  return [&model, &run](const TokenSource& tokens, std::int64_t, std::int64_t count,
                        double* losses) {
    for (std::int64_t m = 0; m < count; ++m) {
      const LoadedMicroBatch loaded = tokens();
      const DeviceTokens on_device(
          run.context, {loaded.batch, loaded.time, loaded.ids, loaded.targets, loaded.documents},
          model.config().vocab, loaded.lease);
      losses[m] = model.evaluate(on_device.micro_batch(), run);
    }
  };
}

Evaluation evaluate(const Dataset& dataset, const EvaluationPlan& plan, Communicator& comm,
                    const LossesOf& losses_of) {
  const std::int64_t samples = std::min(dataset.samples(plan.sequence), plan.max_samples);
  const std::int64_t batch = std::min(plan.micro_batch, samples);
  const std::int64_t whole = samples / batch;  // micro-batches
  const std::int64_t rest = samples % batch;  // samples in one more, smaller micro-batch at the end
  // All ranks compute equally many, because the ranks of ZeRO 3 gather parameters together in every
  // pass. The last ranks repeat some of others.
  const std::int64_t per_rank = (whole + comm.size() - 1) / comm.size();
  const std::int64_t first = std::min(per_rank * comm.rank(), whole - per_rank);
  std::vector<MicroResult> own(static_cast<std::size_t>(per_rank));
  Evaluation result;
  evaluate_span(dataset, plan, {batch, first * batch, per_rank, plan.in_flight}, losses_of,
                own.data(), result);

  std::vector<MicroResult> all(static_cast<std::size_t>(per_rank * comm.size()));
  for (std::int64_t m = per_rank * comm.rank(); m < std::min(per_rank * (comm.rank() + 1), whole);
       ++m) {
    all[static_cast<std::size_t>(m)] = own[static_cast<std::size_t>(m - first)];
  }
  static_assert(sizeof(MicroResult) == 2 * sizeof(double));
  comm.all_gather({all.data(), 2 * std::ssize(all), DType::f64}).wait();
  all.resize(static_cast<std::size_t>(whole));
  if (rest > 0) {
    all.emplace_back();
    evaluate_span(dataset, plan, {rest, whole * batch, 1, 1}, losses_of, &all.back(), result);
  }
  result.samples = samples;
  double sum = 0;
  for (const MicroResult& micro : all) {
    sum += micro.loss;
    result.tokens += static_cast<std::int64_t>(micro.counted);
  }
  result.loss = sum / static_cast<double>(std::max<std::int64_t>(result.tokens, 1));
  return result;
}

void check_samples_read(const Evaluation& evaluation, Communicator& comm) {
  const std::string faults = gather_faults(comm, evaluation.fault);
  const std::int64_t io = evaluation.is_io_fault ? 1 : 0;
  if (faults.empty()) {
    return;
  }
  if (all_reduce_value(comm, io, ReduceOp::max) > 0) {
    throw IoError(faults);
  }
  throw DataError(faults);
}

}  // namespace trireme
