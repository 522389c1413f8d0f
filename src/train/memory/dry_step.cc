#include "src/train/memory/dry_step.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "src/nn/model.h"
#include "src/parallel/gradient_reducer.h"
#include "src/parallel/pipeline/pipeline_runner.h"
#include "src/parallel/tensor_ranks.h"
#include "src/train/memory/dry_parts.h"

namespace trireme {
namespace {

constexpr std::int64_t kF32 = size_of(DType::f32);

// A virtual stage, without its numbers.
struct DryChunk {
  ParameterStore store;
  Model model;
  ZeroLayout layout;
  DryParameters parameters;
  GradientReducer reducer;

  DryChunk(const RunConfig& config, const Layout& run, int rank, int chunk, Pool& names,
           const ZeroTools& tools)
      : store(names, config.compute_dtype()),
        model(config.model, run.slice(rank, chunk), store),
        layout(store, run.zero, {run.grid.dp(), run.grid.dp_rank(rank)},
               cut_into_buckets(store, config.parallel.bucket_bytes, model.parameter_borders())),
        parameters(store, layout, tools.shared_pool),
        reducer(layout, tools, run.reproducibility) {}
  DryChunk(const DryChunk&) = delete;
  DryChunk& operator=(const DryChunk&) = delete;
};

// Elements of a store's computes at home on this rank (zero_parameters.h).
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

// Elements that this rank owns and that are primary, which are those that it saves; replicas that
// hold the same share them. Of all parameters, or of the hidden matrices alone.
enum class Which : std::uint8_t { all, hidden };
std::int64_t elements_to_save(const ParameterStore& store, const ZeroLayout& layout, Which which) {
  std::int64_t primary = 0;
  for (ParameterId id = 0; id < store.count(); ++id) {
    const bool counts = which == Which::all || store[id].hidden;
    if (const int b = layout.bucket_of(id); counts && b >= 0 && store[id].place.primary) {
      const IndexRange owned = layout.owned(b);
      const std::int64_t from = std::max(owned.first, store[id].offset);
      const std::int64_t to =
          std::min(owned.first + owned.count, store[id].offset + store[id].elements());
      primary += std::max<std::int64_t>(to - from, 0);
    }
  }
  const std::int64_t sharers = layout.level() == 0 ? layout.ranks() : 1;
  return (primary + sharers - 1) / sharers;
}

// Adds what does not change from step to step.
void add_state(const ParameterStore& store, const ZeroLayout& layout,
               const OptimizerOptions& optimizer, StepMemory& memory) {
  const int states = optimizer.states();
  const bool narrow = store.compute_dtype() != DType::f32;
  memory.computes += elements_at_home(store, layout) * size_of(store.compute_dtype());
  memory.masters += narrow ? layout.owned_elements() * kF32 : 0;
  memory.states +=
      (optimizer.state_elements(store, layout.owned_elements()) + optimizer.workspace(store)) *
      kF32;
  memory.snapshot += (1 + states) * elements_to_save(store, layout, Which::all) * kF32;
  if (optimizer.kind == OptimizerKind::muon) {  // its matrices have a state fewer
    memory.snapshot -= elements_to_save(store, layout, Which::hidden) * kF32;
  }
}

class DryStep : public StageWork {
 public:
  DryStep(const RunConfig& config, const Layout& layout, int rank)
      : config_(config),
        layout_(layout),
        memory_(config.train.micro_batch * config.data.sequence * size_of(DType::f64)),
        dp_(layout.grid.dp_rank(rank), layout.grid.dp(), DryCommunicator::Done::when_waited_for),
        tp_(layout.grid.tp_rank(rank), layout.grid.tp(), DryCommunicator::Done::at_once),
        pp_(layout.grid.pp_rank(rank), layout.grid.pp(), DryCommunicator::Done::at_once),
        group_(tp_, exchanged_, stream_) {
    const ZeroTools tools{dp_, no_kernels(), stream_, state_, shared_state_};
    for (int chunk = 0; chunk < layout.shape.chunks; ++chunk) {
      chunks_.push_back(std::make_unique<DryChunk>(config, layout, rank, chunk, names_, tools));
    }
  }

  // The largest step needs most activations. Others of the ramp may need more of one kind of
  // gradient buffers, and the pools keep the most of each kind.
  StepMemory run() {
    const std::int64_t largest = config_.batches().full();
    for (const bool whole : {true, false}) {
      if (const std::int64_t other = step_of_most_gradients(whole); other != largest) {
        one_step(other);
      }
    }
    one_step(largest);
    StepMemory memory;
    for (const auto& chunk : chunks_) {
      memory.gradients += chunk->reducer.reserved_buffer_bytes();
      memory.gathered += chunk->parameters.peak_gathered_bytes();
      add_state(chunk->store, chunk->layout, config_.optimizer.options(), memory);
    }
    memory.activations = activations_.reserved_bytes();
    memory.exchanged = exchanged_.reserved_bytes();
    memory.peak_activations = activations_.peak_bytes();
    memory.peak_exchanged = exchanged_.peak_bytes();
    return memory;
  }

  Tensor forward(int chunk, std::int64_t m, Tensor input) override {
    Run run = run_of(chunk);
    return at(chunk).model.forward(tokens(), std::move(input), flights_[{chunk, m}].saved, run);
  }

  Tensor backward(int chunk, std::int64_t m, Tensor doutput) override {
    Tensor d = backward_pass(chunk, m, std::move(doutput), nullptr);
    flights_.erase({chunk, m});
    return d;
  }

  Tensor backward_input(int chunk, std::int64_t m, Tensor doutput) override {
    return backward_pass(chunk, m, std::move(doutput), &flights_.at({chunk, m}).later);
  }

  void backward_weight(int chunk, std::int64_t m) override {
    Flight& flight = flights_.at({chunk, m});
    Run run = run_of(chunk);
    run.gradients = flight.gradients;
    for (auto& work : flight.later) {
      std::exchange(work, {})(run);
    }
    flights_.erase({chunk, m});
  }

  Tensor embedding_gradient(std::int64_t m) override {
    return std::move(embedding_gradients_.extract(m).mapped());
  }

  void tie(std::int64_t m, Tensor d) override {
    const int chunk = static_cast<int>(chunks_.size()) - 1;
    Run run = run_of(chunk);
    run.gradients = tied_.extract(m).mapped();
    at(chunk).model.add_tied_gradient(tokens(), d, run);
  }

 private:
  struct Flight {
    Saved saved;
    GradientSink* gradients = nullptr;
    WeightGradients later;
  };

  void one_step(std::int64_t sequences) {
    const std::int64_t micro_batches = sequences / config_.train.micro_batch;
    for (const auto& chunk : chunks_) {
      chunk->reducer.begin_step(micro_batches);
    }
    PipelineShape shape = layout_.shape;
    shape.micro_batches = micro_batches / layout_.grid.dp();
    PipelineRunner runner({pp_, exchanged_, stream_}, shape, stream_shape(),
                          config_.compute_dtype());
    runner.run(make_schedule(layout_.schedule, shape, pp_.rank()), *this);
    for (const auto& chunk : chunks_) {
      chunk->reducer.finish_step();
    }
  }

  // The number of sequences in the step that needs most memory for gradients, among those that keep
  // them whole, or among the others; the largest of equals. The full batch if there is none.
  std::int64_t step_of_most_gradients(bool whole) const {
    const BatchSchedule batches = config_.batches();
    std::int64_t sequences = batches.full();
    std::int64_t most = 0;
    for (std::int64_t stage = batches.stages() - 1; stage >= 0; --stage) {
      const std::int64_t micro_batches = batches.size_of_stage(stage) / config_.train.micro_batch;
      std::int64_t bytes = 0;
      for (const auto& chunk : chunks_) {
        const ZeroLayout& zero = chunk->layout;
        const GradientRounds rounds =
            gradient_rounds(micro_batches, zero.ranks(), zero.level(), layout_.reproducibility);
        bytes += keeps_whole(rounds, zero.level()) == whole
                     ? gradient_bytes(zero, micro_batches, layout_.reproducibility)
                     : 0;
      }
      if (bytes > most) {
        most = bytes;
        sequences = batches.size_of_stage(stage);
      }
    }
    return sequences;
  }

  DryChunk& at(int chunk) { return *chunks_[static_cast<std::size_t>(chunk)]; }

  Run run_of(int chunk) {
    Run run{.kernels = no_kernels(),
            .stream = stream_,
            .pool = activations_,
            .parameters = at(chunk).store,
            .residence = &at(chunk).parameters,
            .group = &group_,
            .sequence_parallel = layout_.sequence_parallel};
    run.training = true;
    return run;
  }

  // Of what stages pass on: this rank's rows.
  Shape stream_shape() const {
    const std::int64_t batch = config_.train.micro_batch;
    const std::int64_t time = config_.data.sequence;
    const std::int64_t channels = config_.model.hidden;
    return layout_.sequence_parallel ? Shape{1, batch * time / tp_.size(), channels}
                                     : Shape{batch, time, channels};
  }

  MicroBatch tokens() const {
    const ConstView ids{memory_.zeros(), config_.train.micro_batch * config_.data.sequence,
                        DType::i32};
    return {config_.train.micro_batch, config_.data.sequence, ids, ids};
  }

  Tensor backward_pass(int chunk, std::int64_t m, Tensor doutput, WeightGradients* later) {
    DryChunk& c = at(chunk);
    Flight& flight = flights_.at({chunk, m});
    flight.gradients = &c.reducer.open(c.reducer.micro_batches().at(static_cast<std::size_t>(m)));
    Run run = run_of(chunk);
    run.gradients = flight.gradients;
    run.later = later;
    Model::Backward back = c.model.backward(tokens(), std::move(doutput), 1, flight.saved, run);
    if (c.model.is_tied_last()) {
      tied_[m] = flight.gradients;
    }
    if (c.model.is_tied_first()) {
      embedding_gradients_[m] = std::exchange(back.d, {});
    }
    return std::move(back.d);
  }

  const RunConfig& config_;
  const Layout& layout_;
  Stream stream_{Device{}, 1};
  Pool names_{Device{}};  // of the few numbers that models make for themselves
  DryMemory memory_;
  Pool state_{Device{}, memory_};
  Pool shared_state_{Device{}, memory_};
  Pool activations_{Device{}, memory_};
  Pool exchanged_{Device{}, memory_};
  DryCommunicator dp_;
  DryCommunicator tp_;
  DryCommunicator pp_;
  TensorRanks group_;
  std::vector<std::unique_ptr<DryChunk>> chunks_;
  std::map<std::pair<int, std::int64_t>, Flight> flights_;
  std::map<std::int64_t, GradientSink*> tied_;
  std::map<std::int64_t, Tensor> embedding_gradients_;
};

}  // namespace

StepMemory step_memory(const RunConfig& config, const Layout& layout, int rank) {
  return DryStep(config, layout, rank).run();
}

StepMemory taken_memory(const Engine& engine) {
  StepMemory taken;
  for (const auto& chunk : engine.chunks()) {
    ZeroState& state = chunk->state;
    const std::int64_t home = elements_at_home(chunk->parameters, state.layout()) *
                              size_of(chunk->parameters.compute_dtype());
    taken.computes += home;
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
  taken.activations = engine.activation_pool().reserved_bytes();
  taken.exchanged = engine.exchange_pool().reserved_bytes();
  taken.peak_activations = engine.activation_pool().peak_bytes();
  taken.peak_exchanged = engine.exchange_pool().peak_bytes();
  return taken;
}

}  // namespace trireme
