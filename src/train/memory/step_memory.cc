#include "src/train/memory/step_memory.h"

#include <vector>

#include "mpi/watch/flight_recorder.h"
#include "src/base/fault.h"
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

// Returns the first batch of the ramp's stage that needs most memory for gradients, among the
// stages that keep them whole or among the others; the largest batch of equals. Returns the first
// full batch if there is none.
std::int64_t batch_of_most_gradients(const Engine& engine, bool whole) {
  const BatchSchedule batches = engine.config().batches();
  std::int64_t found = batches.stages() - 1;
  std::int64_t most = 0;
  for (std::int64_t stage = batches.stages() - 1; stage >= 0; --stage) {
    const std::int64_t micro_batches =
        batches.size_of_stage(stage) / engine.config().train.micro_batch;
    std::int64_t bytes = 0;
    for (const auto& chunk : engine.chunks()) {
      const ZeroLayout& zero = chunk->state.layout();
      const Reproducibility how = engine.layout().reproducibility;
      const GradientRounds rounds = gradient_rounds(micro_batches, zero.ranks(), zero.level(), how);
      bytes +=
          keeps_whole(rounds, zero.level()) == whole ? gradient_bytes(zero, micro_batches, how) : 0;
    }
    if (bytes > most) {
      most = bytes;
      found = stage;
    }
  }
  return batches.first_batch(found);
}

}  // namespace

// The largest step needs most activations. Other steps of the ramp may need more of one kind of
// gradient buffers, and the pools keep the peak of each kind.
StepMemory step_memory(const RunConfig& config, const Layout& layout, int rank, Device counting) {
  const FaultsPaused paused;
  DeviceContext context(counting, 1);
  FlightRecorder recorder(rank, "nowhere");
  NcclScratch scratch;
  DryWorld world(layout.grid, rank, acts_as_cuda(counting) ? &scratch : nullptr);
  Engine engine(config, layout, {world, world, recorder, context});
  const std::int64_t tokens = config.train.micro_batch * config.data.sequence;
  const std::vector<std::int32_t> zeros(static_cast<std::size_t>(tokens), 0);
  TrainStep step(engine, [&]() -> LoadedMicroBatch {
    const ConstView ids{zeros.data(), tokens, DType::i32};
    return {0, config.train.micro_batch, config.data.sequence, ids, ids, nullptr};
  });
  const BatchSchedule batches = config.batches();
  const std::int64_t largest = batches.first_batch(batches.stages() - 1);
  const auto run_batch = [&](std::int64_t batch) {
    TrainingCounters counters;
    counters.step = batch;
    (void)step.run(counters, 0);
  };
  for (const bool whole : {true, false}) {
    if (const std::int64_t other = batch_of_most_gradients(engine, whole); other != largest) {
      run_batch(other);
    }
  }
  run_batch(largest);
  StepMemory taken = taken_memory(engine);
  taken.scratch = scratch.reserved_bytes();
  return taken;
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
  const DeviceContext& context = engine.context();
  taken.activations = context.activations().reserved_bytes();
  taken.exchanged = context.exchange().reserved_bytes();
  taken.peak_activations = context.activations().peak_bytes();
  taken.peak_exchanged = context.exchange().peak_bytes();
  return taken;
}

}  // namespace trireme
