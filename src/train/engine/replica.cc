#include "src/train/engine/replica.h"

#include <algorithm>
#include <utility>

#include "src/base/fault.h"
#include "src/base/ignored_target.h"
#include "src/base/stopwatch.h"
#include "src/compute/counting_device.h"
#include "src/nn/device_tokens.h"
#include "src/parallel/pipeline/pipeline_message.h"

namespace trireme {
namespace {

// Returns whether the rank has the embedding or the head, which read tokens and targets.
bool has_an_end(const Communicator& pp) { return pp.rank() == 0 || pp.rank() == pp.size() - 1; }

// Flight is the state of a micro-batch in a chunk between its forward and the end of its backward.
struct Flight {
  Saved saved;
  GradientSink* gradients = nullptr;
  WeightGradients later;
  FlightGraphs* graphs = nullptr;  // what repeats the passes; null if they are computed anew
};

}  // namespace

// Work does the work of one step or one evaluation.
class Replica::Work : public StageWork {
 public:
  // tokens: null if no chunk of this rank reads any. count: number of micro-batches. graphs: null
  // to compute each micro-batch anew.
  Work(const Parts& parts, const TokenSource* tokens, std::int64_t batch, std::int64_t count,
       MicroBatchGraphs* graphs = nullptr)
      : parts_(parts), source_(tokens), batch_(batch), count_(count), graphs_(graphs) {
    if (parts.chunks.back()->model.slice().has_head(parts.config.model)) {
      losses_ = Tensor(parts.context.activations(), {count}, DType::f64);
    }
    counted_.resize(static_cast<std::size_t>(count * batch));
  }

  // Prepares the work for training step `step` of `sequences`; without this call, it evaluates.
  // numbers: those of the micro-batches within the global batch.
  void train(std::int64_t step, std::int64_t sequences, double loss_scale,
             const std::vector<std::int64_t>& numbers) {
    step_ = step;
    numbers_ = &numbers;
    const auto tokens = static_cast<double>(sequences * parts_.config.data.sequence);
    scale_ = static_cast<float>(1 / tokens) * static_cast<float>(loss_scale);
    if (!losses_.empty() && parts_.config.data.is_mixture()) {
      sample_losses_ =
          Tensor(parts_.context.activations(), {count_ * samples_per_micro_batch()}, DType::f64);
    }
    if (parts_.teacher != nullptr) {
      taught_ = Tensor(parts_.context.activations(), {count_, 2}, DType::f64);
    }
  }

  Tensor forward(int chunk, std::int64_t m, Tensor input) override {
    ModelChunk& c = *parts_.chunks[static_cast<std::size_t>(chunk)];
    const MicroBatch micro_batch = tokens_of(m);
    Run run = run_of(chunk, m);
    if (!is_training()) {
      Tensor stream = c.model.evaluate(micro_batch, std::move(input), run);
      if (&c == parts_.chunks.back().get()) {
        tokens_.erase(m);
      }
      return stream;
    }
    fault("step.forward");
    Flight& flight = flights_[{chunk, m}];
    if (graphs_ == nullptr) {
      return c.model.forward(micro_batch, std::move(input), flight.saved, run);
    }
    flight.graphs = &graphs_->idle(chunk);
    flight.graphs->begin(micro_batch, run.dropout.step, run.first_sample, scale_);
    return flight.graphs->pass(
        Pass::forward, input, run,
        [&](const MicroBatch& placed, Tensor in, Run& here) {
          return c.model.forward(placed, std::move(in), flight.saved, here);
        },
        false);
  }

  Tensor backward(int chunk, std::int64_t m, Tensor doutput) override {
    Tensor d = backward_pass(chunk, m, std::move(doutput), nullptr);
    end_flight(chunk, m);
    return d;
  }

  Tensor backward_input(int chunk, std::int64_t m, Tensor doutput) override {
    return backward_pass(chunk, m, std::move(doutput), &flights_.at({chunk, m}).later);
  }

  void backward_weight(int chunk, std::int64_t m) override {
    Flight& flight = flights_.at({chunk, m});
    Run run = run_of(chunk, m);
    run.gradients = flight.gradients;
    // Each function is destroyed as soon as it is done, to free its tensors.
    const auto compute = [&](const MicroBatch&, Tensor, Run& here) {
      for (auto& work : flight.later) {
        std::exchange(work, {})(here);
      }
      return Tensor();
    };
    if (flight.graphs != nullptr) {
      (void)flight.graphs->pass(Pass::weights, {}, run, compute, true);
    } else {
      (void)compute({}, {}, run);
    }
    end_flight(chunk, m);
  }

  Tensor embedding_gradient(std::int64_t m) override {
    return std::move(embedding_gradients_.extract(m).mapped());
  }

  void tie(std::int64_t m, Tensor d) override {
    const int chunk = static_cast<int>(parts_.chunks.size()) - 1;
    Run run = run_of(chunk, m);
    run.gradients = tied_.extract(m).mapped();
    parts_.chunks.back()->model.add_tied_gradient(tokens_of(m), d, run);
    tokens_.erase(m);
  }

  // Waits for the device and returns the loss of each of the replica's micro-batches; zeros if
  // another stage computes it.
  std::vector<double> losses() const {
    return losses_.empty() ? std::vector<double>(static_cast<std::size_t>(count_), 0.0)
                           : parts_.context.read<double>(losses_.view());
  }
  // Moves the results of the training step out.
  MicroBatchOutput output() {
    MicroBatchOutput output;
    output.micro_batches = count_;
    output.losses = std::move(losses_);
    output.sample_losses = std::move(sample_losses_);
    output.taught = std::move(taught_);
    output.counted = std::move(counted_);
    output.watches = std::move(watches_);
    output.has_digests = parts_.config.divergence.digests;
    output.leases = std::move(leases_);
    return output;
  }
  // Waits until a device has copied all tokens of an evaluation, so that their memory is free.
  void end_leases() {
    copied_.wait();
    leases_.clear();
  }
  double data_wait_seconds = 0;

 private:
  Run run_of(int chunk, std::int64_t m) const {
    ModelChunk& c = *parts_.chunks[static_cast<std::size_t>(chunk)];
    Run run{.context = parts_.context,
            .parameters = c.parameters,
            .residence = c.state.layout().level() > 0 ? &c.state.parameters() : nullptr,
            .group = &parts_.group,
            .sequence_parallel = parts_.layout.sequence_parallel};
    if (!losses_.empty() && &c == parts_.chunks.back().get()) {
      run.loss = losses_.view().slice(m, 1);
      if (!sample_losses_.empty()) {
        const std::int64_t samples = samples_per_micro_batch();
        run.sample_losses = sample_losses_.view().slice(m * samples, samples);
      }
      if (!taught_.empty()) {
        run.teaching = &parts_.teacher->teaching();
        run.taught = taught_.view().slice(2 * m, 2);
      }
    }
    if (is_training()) {
      run.training = true;
      run.fp8 = parts_.fp8.products(chunk);
      run.dropout = {parts_.config.train.seed, static_cast<std::uint32_t>(step_)};
      run.loss_terms = {parts_.config.train.label_smoothing, parts_.config.train.z_loss};
      run.first_sample = number_of(m) * parts_.config.train.micro_batch;
    }
    return run;
  }

  bool is_training() const { return numbers_ != nullptr; }
  std::int64_t samples_per_micro_batch() const { return parts_.config.train.micro_batch; }

  std::int64_t number_of(std::int64_t m) const { return (*numbers_)[static_cast<std::size_t>(m)]; }

  // Returns micro-batch m, for which it loads all up to m. A rank that reads no tokens gets the
  // shape alone.
  MicroBatch tokens_of(std::int64_t m) {
    if (source_ == nullptr) {
      return {batch_, parts_.config.data.sequence, {}, {}};
    }
    for (; loaded_ <= m; ++loaded_) {
      const char* const phase = parts_.recorder.enter_phase("data_load");
      const Stopwatch waiting;
      const SpanTimer span(parts_.spans, SpanKind::data, "tokens");
      load_tokens();
      data_wait_seconds += waiting.seconds();
      parts_.recorder.enter_phase(phase);
    }
    return tokens_.at(m).micro_batch();
  }

  // A training step has a wait after all its copies, until which it keeps the leases. An evaluation
  // keeps one, since the loader has memory for few micro-batches.
  void load_tokens() {
    if (!is_training()) {
      end_leases();
    }
    LoadedMicroBatch loaded = (*source_)();
    if (!has_an_end(parts_.pp)) {  // the stages between the ends need the documents alone
      loaded.ids = {};
      loaded.targets = {};
    }
    count_targets(loaded);
    tokens_.try_emplace(
        loaded_, parts_.context,
        MicroBatch{loaded.batch, loaded.time, loaded.ids, loaded.targets, loaded.documents},
        parts_.config.model.vocab, loaded.lease);
    if (acts_as_cuda(parts_.context.device())) {
      leases_.push_back(std::move(loaded.lease));
      copied_ = is_training() ? StreamEvent() : parts_.context.stream().record();
    }
  }

  void count_targets(const LoadedMicroBatch& loaded) {
    const auto* targets = as<std::int32_t>(loaded.targets);
    for (std::int64_t b = 0; b < loaded.batch && !loaded.targets.empty(); ++b) {
      counted_[static_cast<std::size_t>(loaded_ * batch_ + b)] =
          counted_targets(targets + b * loaded.time, loaded.time);
    }
  }

  Tensor backward_pass(int chunk, std::int64_t m, Tensor doutput, WeightGradients* later) {
    fault("step.backward");
    ModelChunk& c = *parts_.chunks[static_cast<std::size_t>(chunk)];
    Flight& flight = flights_.at({chunk, m});
    Run run = run_of(chunk, m);
    run.later = later;
    Tensor d;
    if (flight.graphs != nullptr) {
      d = repeated_backward(c, m, doutput, run, flight);
    } else {
      flight.gradients = &sink_of(c, m);
      run.gradients = flight.gradients;
      d = c.model.backward(tokens_of(m), std::move(doutput), scale_, flight.saved, run);
    }
    if (c.model.is_tied_last()) {
      tied_[m] = flight.gradients;
    }
    if (c.model.is_tied_first()) {
      embedding_gradients_[m] = std::exchange(d, {});
    }
    return d;
  }

  Tensor repeated_backward(ModelChunk& chunk, std::int64_t m, const Tensor& doutput, const Run& run,
                           Flight& flight) {
    GradientLeaf& leaf = chunk.state.reducer().open(number_of(m));
    flight.gradients = &leaf;
    flight.graphs->gradients_to(leaf);
    Tensor d = flight.graphs->pass(
        Pass::backward, doutput, run,
        [&](const MicroBatch& placed, Tensor in, Run& here) {
          return chunk.model.backward(placed, std::move(in), scale_, flight.saved, here);
        },
        run.later == nullptr);
    if (!run.loss.empty()) {
      parts_.context.stream().copy(run.loss, flight.graphs->loss());
      if (!run.sample_losses.empty()) {
        parts_.context.stream().copy(run.sample_losses, flight.graphs->sample_losses());
      }
    }
    return d;
  }

  // Returns the reducer's sink, or a GradientWatch in front of it if digests or faults need one.
  GradientSink& sink_of(ModelChunk& chunk, std::int64_t m) {
    GradientSink& sink = chunk.state.reducer().open(number_of(m));
    if (!parts_.config.divergence.digests && !faults_armed()) {
      return sink;
    }
    watches_.emplace_back(m, std::make_unique<GradientWatch>(chunk.parameters, sink,
                                                             parts_.config.divergence.digests));
    return *watches_.back().second;
  }

  // The tokens are kept until the backward of the rank's first chunk, which is the last of this
  // micro-batch, or until the embedding's part of a tied gradient has been added.
  void end_flight(int chunk, std::int64_t m) {
    flights_.erase({chunk, m});
    if (chunk == 0 && !tied_.contains(m)) {
      tokens_.erase(m);
    }
  }

  using Pass = FlightGraphs::Pass;

  const Parts& parts_;
  const TokenSource* source_;
  std::int64_t batch_;
  std::int64_t count_;
  MicroBatchGraphs* graphs_;
  Tensor losses_;         // f64 [count], by micro-batch; empty unless this rank has the head
  Tensor sample_losses_;  // f64 [count, B]; empty unless it trains on a mixture
  Tensor taught_;         // f64 [count, 2], as Run::taught; empty without a teacher
  std::vector<std::int64_t> counted_;  // [count, B]: targets of each sample that count
  std::int64_t step_ = 0;
  // Weight of each token's loss in the mean over all tokens, times the loss scale. Where targets
  // are ignored, TrainStep makes it the mean over the others.
  float scale_ = 0;
  const std::vector<std::int64_t>* numbers_ = nullptr;
  std::int64_t loaded_ = 0;
  std::map<std::int64_t, DeviceTokens> tokens_;
  // On a device: the leases of tokens that it may not have copied, and in an evaluation the point
  // after the last copy.
  std::vector<std::shared_ptr<const void>> leases_;
  StreamEvent copied_;
  std::map<std::pair<int, std::int64_t>, Flight> flights_;
  std::map<std::int64_t, GradientSink*> tied_;
  std::map<std::int64_t, Tensor> embedding_gradients_;
  // The watches of this step, with the numbers of their micro-batches.
  std::vector<std::pair<std::int64_t, std::unique_ptr<GradientWatch>>> watches_;
};

Replica::Replica(Parts parts)
    : parts_(std::move(parts)),
      graphs_(why_no_graphs(parts_.config, parts_.layout, parts_.context.device()).empty()
                  ? std::make_unique<MicroBatchGraphs>(parts_.chunks, parts_.group, parts_.context,
                                                       parts_.config.model)
                  : nullptr),
      shape_(parts_.layout.shape) {
  make_steps();
}

Replica::~Replica() = default;

// Returns the shape of the tensors between stages.
Shape Replica::activation_shape(std::int64_t batch) const {
  const RunConfig& config = parts_.config;
  const std::int64_t channels = config.model.hidden;
  if (parts_.layout.sequence_parallel) {
    return {1, batch * config.data.sequence / parts_.group.size(), channels};
  }
  return {batch, config.data.sequence, channels};
}

bool Replica::reads_tokens() const {
  return has_an_end(parts_.pp) || parts_.config.data.separates_documents();
}

// Makes the pipeline's schedule for this number of micro-batches per replica.
void Replica::schedule(std::int64_t micro_batches) {
  if (shape_.micro_batches != micro_batches) {
    shape_.micro_batches = micro_batches;
    make_steps();
  }
}

void Replica::make_steps() {
  steps_ = make_schedules(parts_.layout.schedule, shape_);
  if (acts_as_cuda(parts_.context.device())) {
    order_ = std::make_unique<TransferOrder>(transfer_order(steps_, shape_, parts_.pp.rank()));
  }
}

MicroBatchOutput Replica::train(std::int64_t step, std::int64_t sequences, double loss_scale,
                                const std::vector<std::int64_t>& micro_batches,
                                const TokenSource& tokens) {
  const RunConfig& config = parts_.config;
  schedule(static_cast<std::int64_t>(micro_batches.size()));
  if (graphs_ != nullptr) {
    graphs_->begin_step();
  }
  Work work(parts_, reads_tokens() ? &tokens : nullptr, config.train.micro_batch,
            static_cast<std::int64_t>(micro_batches.size()), graphs_.get());
  work.train(step, sequences, loss_scale, micro_batches);
  PipelineRunner runner({parts_.pp, parts_.context, parts_.spans}, shape_,
                        activation_shape(config.train.micro_batch), config.compute_dtype());
  runner.run(steps_.at(static_cast<std::size_t>(parts_.pp.rank())), work, order_.get());
  timings_ = runner.timings();
  data_wait_seconds_ = work.data_wait_seconds;
  return work.output();
}

void Replica::evaluate(const TokenSource& tokens, std::int64_t batch, std::int64_t count,
                       double* losses) {
  Work work(parts_, reads_tokens() ? &tokens : nullptr, batch, count);
  PipelineShape shape = parts_.layout.shape;
  shape.micro_batches = count;
  PipelineRunner runner({parts_.pp, parts_.context, parts_.spans}, shape, activation_shape(batch),
                        parts_.config.compute_dtype());
  const TransferOrder order = order_of_forwards(shape, parts_.pp.rank());
  runner.run(make_forward_schedule(shape), work,
             acts_as_cuda(parts_.context.device()) ? &order : nullptr);
  work.end_leases();
  std::ranges::copy(work.losses(), losses);
}

}  // namespace trireme
