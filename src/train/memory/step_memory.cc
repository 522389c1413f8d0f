#include "src/train/memory/step_memory.h"

#include <array>
#include <set>
#include <vector>

#include "mpi/watch/flight_recorder.h"
#include "src/base/fault.h"
#include "src/kernels/no_kernels.h"
#include "src/parallel/gradient_rounds.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/dry_world.h"

namespace trireme {
namespace {

constexpr std::int64_t kF32 = size_of(DType::f32);

// Returns the elements of working copies that this rank always holds (zero_parameters.h).
std::int64_t elements_at_home(const ParameterStore& store, const ZeroLayout& layout) {
  if (layout.level() == 0) {
    return store.flat_elements();
  }
  std::int64_t elements = 0;
  for (int b = 0; b < layout.buckets(); ++b) {
    elements += layout.level() == 3 ? layout.block(b) : layout.padded(b);
  }
  for (ParameterId id = 0; id < store.count(); ++id) {
    elements += layout.bucket_of(id) < 0 ? store[id].elements() : 0;
  }
  return elements;
}

// Returns batches of the ramp, in its order, of which one needs as much memory for gradients as any
// other, in every kind of buffer: the first of each number of partial sums that are kept whole and
// as shards, and the first of the largest size.
std::vector<std::int64_t> unlike_batches(const Engine& engine) {
  const BatchSchedule batches = engine.config().batches();
  const Reproducibility how = engine.layout().reproducibility;
  const ZeroLayout& zero = engine.chunks().front()->state.layout();
  std::set<std::array<std::int64_t, 3>> seen;
  std::vector<std::int64_t> found;
  for (std::int64_t stage = 0; stage < batches.stages(); ++stage) {
    const std::int64_t micro_batches =
        batches.size_of_stage(stage) / engine.config().train.micro_batch;
    const GradientRounds rounds = gradient_rounds(micro_batches, zero.ranks(), zero.level(), how);
    const std::int64_t whole = rounds.each > 1 ? sums_kept(rounds.each, how) : 0;
    const bool is_new = seen.insert({whole, sums_kept(rounds.rounds, how),
                                     keeps_whole(rounds, zero.level()) ? 1 : 0})
                            .second;
    if (is_new || stage == batches.stages() - 1) {
      found.push_back(batches.first_batch(stage));
    }
  }
  return found;
}

// DryRun holds an engine on a counting device, and runs it. Fault points have no effect meanwhile.
class DryRun {
 public:
  DryRun(const RunConfig& config, const Layout& layout, int rank, Device counting)
      : context_(counting, 1),
        recorder_(rank, "nowhere"),
        world_(layout.grid, rank, acts_as_cuda(counting) ? &scratch_ : nullptr),
        engine_(config, layout, {world_, world_, recorder_, context_}) {}

  Engine& engine() { return engine_; }
  std::int64_t nccl_scratch_bytes() const { return scratch_.reserved_bytes(); }

  // Runs a step of the batch schedule.
  void run_batch(std::int64_t batch) {
    TrainStep step(engine_, tokens_of(engine_.config().train.micro_batch));
    TrainingCounters counters;
    counters.step = batch;
    (void)step.run(counters, 0);
  }
  // Evaluates a micro-batch of `samples`.
  void evaluate(std::int64_t samples) {
    double loss = 0;
    engine_.replica().evaluate(tokens_of(samples), samples, 1, &loss);
  }

 private:
  TokenSource tokens_of(std::int64_t samples) {
    const std::int64_t sequence = engine_.config().data.sequence;
    zeros_.assign(static_cast<std::size_t>(samples * sequence), 0);
    return [this, samples, sequence]() -> LoadedMicroBatch {
      const ConstView ids{zeros_.data(), samples * sequence, DType::i32};
      return {0, samples, sequence, ids, ids, nullptr};
    };
  }

  const FaultsPaused paused_;
  DeviceContext context_;
  FlightRecorder recorder_;
  NcclScratch scratch_;
  DryWorld world_;
  Engine engine_;
  std::vector<std::int32_t> zeros_;
};

LibraryCalls calls_of(const ProductRecording& recording) {
  return {recording.products(), {recording.attention(false), recording.attention(true)}};
}

}  // namespace

// The largest step needs most activations. Other steps of the ramp may need more of one kind of
// gradient buffers, and the pools keep the peak of each kind.
StepMemory step_memory(const RunConfig& config, const Layout& layout, int rank, Device counting) {
  DryRun run(config, layout, rank, counting);
  for (const std::int64_t batch : unlike_batches(run.engine())) {
    run.run_batch(batch);
  }
  // An evaluation cannot use the memory of micro-batches that are repeated.
  if (run.engine().graphs() != nullptr && !config.data.validation.empty()) {
    run.evaluate(config.train.micro_batch);
  }
  StepMemory taken = taken_memory(run.engine());
  taken.scratch = run.nccl_scratch_bytes();
  return taken;
}

// All steps multiply matrices of the same shapes, in micro-batches of one size; whether a gradient
// is added to an earlier one depends on the batch.
LibraryCalls step_calls(const RunConfig& config, const Layout& layout, int rank) {
  DryRun run(config, layout, rank, kCountsCuda);
  const ProductRecording recording;
  for (const std::int64_t batch : unlike_batches(run.engine())) {
    run.run_batch(batch);
  }
  return calls_of(recording);
}

LibraryCalls evaluation_calls(const RunConfig& config, const Layout& layout, int rank,
                              const std::vector<std::int64_t>& samples) {
  DryRun run(config, layout, rank, kCountsCuda);
  const ProductRecording recording;
  for (const std::int64_t each : samples) {
    run.evaluate(each);
  }
  return calls_of(recording);
}

StepMemory taken_memory(const Engine& engine) {
  StepMemory taken;
  for (const auto& chunk : engine.chunks()) {
    ZeroState& state = chunk->state;
    const std::int64_t home = elements_at_home(chunk->parameters, state.layout()) *
                              size_of(chunk->parameters.compute_dtype());
    taken.working_copies += home;
    taken.gathered += state.parameters().peak_bytes() - home;
    taken.masters +=
        chunk->parameters.compute_dtype() == DType::f32 ? 0 : state.masters().elements() * kF32;
    const Optimizer& optimizer = state.optimizer();
    taken.states +=
        (optimizer.state_elements() + optimizer.options().workspace(chunk->parameters)) * kF32;
    taken.gradients += state.reducer().reserved_buffer_bytes();
    for (const StatePiece& piece : state.pieces_to_save()) {
      taken.snapshot += (1 + static_cast<std::int64_t>(piece.states.size())) * piece.count() * kF32;
    }
  }
  if (const Teacher* const teacher = engine.teacher(); teacher != nullptr) {
    taken.working_copies += teacher->bytes();
    taken.loading = teacher->loading_bytes();
  }
  const DeviceContext& context = engine.context();
  taken.activations = context.activations().reserved_bytes();
  taken.exchanged = context.exchange().reserved_bytes();
  taken.peak_activations = context.activations().peak_bytes();
  taken.peak_exchanged = context.exchange().peak_bytes();
  // The memory of recorded micro-batches is never available to anything else.
  if (const MicroBatchGraphs* const graphs = engine.graphs(); graphs != nullptr) {
    taken.activations += graphs->activation_bytes();
    taken.exchanged += graphs->exchanged_bytes();
    taken.peak_activations += graphs->activation_bytes();
    taken.peak_exchanged += graphs->exchanged_bytes();
  }
  return taken;
}

}  // namespace trireme
