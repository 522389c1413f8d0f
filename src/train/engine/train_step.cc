#include "src/train/engine/train_step.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "src/base/fault.h"
#include "src/base/floating_point.h"
#include "src/base/stopwatch.h"
#include "src/optim/gradient_norm.h"
#include "src/train/engine/device_fault.h"
#include "src/train/engine/loss_scale.h"
#include "src/train/engine/tied_embedding.h"

namespace trireme {

double sum_in_order(const double* values, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += values[i];
  }
  return sum;
}

std::int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  long long pages = 0;
  if (file != nullptr) {
    if (std::fscanf(file, "%*s %lld", &pages) != 1) {
      pages = 0;
    }
    std::fclose(file);
  }
  return pages * ::sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string name; file >> name;) {
    std::int64_t kib = 0;
    if (name == "VmHWM:" && file >> kib) {
      return kib * 1024;
    }
  }
  // Linux keeps ru_maxrss across exec: it may be the peak of the process that started this one.
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

namespace {

// Clears the sign of a NaN, which has no meaning but would be printed.
double without_sign_of_nan(double x) { return std::isnan(x) ? std::abs(x) : x; }

constexpr std::size_t kLossParts = 2;  // with a teacher

// Stores the means of the parts of the losses, [micro-batches, 2] in order; nothing if empty.
void note_parts(const std::vector<double>& taught, StepResult& result) {
  double sums[kLossParts] = {};
  for (std::size_t i = 0; i < taught.size(); ++i) {
    sums[i % kLossParts] += taught[i];
  }
  const auto counted = static_cast<double>(std::max<std::int64_t>(result.counted, 1));
  result.cross_entropy = without_sign_of_nan(sums[0] / counted);
  result.divergence = without_sign_of_nan(sums[1] / counted);
}

// MicroReport is what the ranks report to each other about each micro-batch: its loss, the number
// of its targets that count, both for `samples` samples, and with a teacher the two parts of the
// loss.
struct MicroReport {
  std::size_t samples;
  std::size_t parts;  // kLossParts with a teacher, else 0

  std::size_t size() const { return 2 + 2 * samples + parts; }
  // counted: [B], of the samples, which may be more than are reported.
  double* write(double* to, double loss, const double* losses, const double* counted,
                std::int64_t batch) const {
    *to++ = loss;
    *to++ = sum_in_order(counted, batch);
    to = samples == 0 ? to : std::copy_n(losses, samples, to);
    return std::copy_n(counted, samples, to);
  }
};

// Lets a planned fault change a master weight.
void expose_weights(const ModelChunk& chunk) {
  const std::vector<StatePiece> pieces = chunk.state.pieces_to_load();
  if (!pieces.empty()) {
    device_fault("step.weights", pieces.front().value, chunk.parameters.context());
  }
}

}  // namespace

StepResult TrainStep::run(TrainingCounters& counters, int signal) {
  restore_floating_point();  // a library that was loaded since may have changed it
  StepResult result;
  result.sequences = engine_.config().batches().size_of(counters.batches());
  result.lr = learning_rate(engine_.config().optimizer.schedule, counters.step);
  result.loss_scale = loss_scale(engine_.config().train, counters);
  engine_.fp8().begin_step(counters.fp8);
  clear_times();
  const StreamMark begin = engine_.context().stream().mark();
  MicroBatchOutput output = run_micro_batches(counters, result);
  for (const auto& chunk : engine_.chunks()) {
    chunk->state.reducer().finish_step();
  }
  const StreamMark end = engine_.context().stream().mark();
  const SpanTimer span(engine_.spans(), SpanKind::optimizer, "optimizer");
  const ExactSum squares = read(std::move(output), result);
  note_times(begin, end, result);
  const Stopwatch exposed;
  share(signal, result);
  result.comm_exposed_ms += exposed.milliseconds();
  judge_and_update(squares, counters, result);
  return result;
}

// Returns the number of micro-batches in the whole step, over all replicas.
std::int64_t TrainStep::micro_batches(const StepResult& result) const {
  return result.sequences / engine_.config().train.micro_batch;
}

MicroBatchOutput TrainStep::run_micro_batches(const TrainingCounters& counters,
                                              StepResult& result) {
  for (const auto& chunk : engine_.chunks()) {
    chunk->state.reducer().begin_step(micro_batches(result));
  }
  return engine_.replica().train(counters.step, result.sequences, result.loss_scale,
                                 engine_.micro_batches(result.sequences), tokens_);
}

void TrainStep::clear_times() {
  engine_.group().waited().clear();
  for (const auto& chunk : engine_.chunks()) {
    chunk->state.parameters().exposed().clear();
  }
}

// Stores the times between two marks in the result. Call it after the host has waited for the
// second mark. While the host waits for data, its device may still have work.
void TrainStep::note_times(const StreamMark& begin, const StreamMark& end,
                           StepResult& result) const {
  const Replica& replica = engine_.replica();
  result.data_wait_ms = 1e3 * replica.data_wait_seconds();
  result.tensor_wait_ms = 1e3 * engine_.group().waited().seconds();
  result.pipeline_wait_ms = 1e3 * replica.timings().wait.seconds();
  for (const auto& chunk : engine_.chunks()) {
    result.comm_exposed_ms += 1e3 * chunk->state.reducer().timings().exposed.seconds();
    result.comm_exposed_ms += 1e3 * chunk->state.parameters().exposed().seconds();
  }
  const bool runs_at_once = engine_.context().stream().queue() == nullptr;
  result.compute_ms = 1e3 * begin.seconds_to(end) - (runs_at_once ? result.data_wait_ms : 0) -
                      result.tensor_wait_ms - result.pipeline_wait_ms - result.comm_exposed_ms;
}

// Reads what the step has computed so far: losses, digests, and the squares of this rank's
// gradients, which it returns. Nothing else in a step waits for the device.
ExactSum TrainStep::read(MicroBatchOutput output, StepResult& result) {
  SquareSums squares(engine_.context());
  for (const auto& chunk : engine_.chunks()) {
    chunk->state.add_squares(squares);
  }
  HostReads reads(engine_.context());
  output.read(reads);
  result.sample_counts.assign(output.counted.begin(), output.counted.end());
  const std::size_t sums = reads.add(squares.start());
  engine_.fp8().read(reads);
  reads.wait();
  result.bits = output.bits(reads);
  result.sample_losses = output.losses_of_samples(reads);
  result.taught = output.parts_of_losses(reads);
  engine_.fp8().take(reads);
  return SquareSums::total(reads.at<double>(sums));
}

// Exchanges what the ranks report to each other in one small all-gather per step. The losses are
// those of the last stages; the ranks of a tensor-parallel group have the same ones.
void TrainStep::share(int signal, StepResult& result) {
  constexpr std::size_t kExtra = 2;
  const std::vector<double>& losses = result.bits.losses;
  Communicator& world = engine_.world();
  const RunConfig& config = engine_.config();
  const std::int64_t batch = config.train.micro_batch;
  const MicroReport report{static_cast<std::size_t>(config.data.is_mixture() ? batch : 0),
                           config.distill.is_on() ? kLossParts : 0};
  const std::size_t samples = report.samples;
  const std::size_t per_rank = losses.size() * report.size() + kExtra;
  const Layout& layout = engine_.layout();
  const int ranks = world.size();
  std::vector<double> all(per_rank * static_cast<std::size_t>(ranks), 0.0);
  double* own = all.data() + per_rank * static_cast<std::size_t>(world.rank());
  result.sample_losses.resize(losses.size() * samples, 0.0);
  result.taught.resize(losses.size() * report.parts, 0.0);
  for (std::size_t m = 0; m < losses.size(); ++m) {
    own = report.write(own, losses[m], result.sample_losses.data() + m * samples,
                       result.sample_counts.data() + m * static_cast<std::size_t>(batch), batch);
    own = std::copy_n(result.taught.data() + m * report.parts, report.parts, own);
  }
  own[0] = signal;
  own[1] = static_cast<double>(resident_bytes());
  SpanTimer meeting(engine_.spans(), SpanKind::meet, "losses");
  world.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::f64}).wait();
  meeting.end();

  const ProcessGrid& grid = layout.grid;
  std::vector<double>& in_order = result.micro_losses;
  in_order.assign(static_cast<std::size_t>(micro_batches(result)), 0.0);
  result.sample_losses.assign(in_order.size() * samples, 0.0);
  result.sample_counts.assign(in_order.size() * samples, 0.0);
  std::vector<double> taught(in_order.size() * report.parts, 0.0);
  for (int rank = 0; rank < ranks; ++rank) {
    const double* from = all.data() + per_rank * static_cast<std::size_t>(rank);
    if (layout.has_head(rank) && grid.tp_rank(rank) == 0) {
      const double* of_micro = from;
      for (const std::int64_t number : layout.micro_batches_of(rank, micro_batches(result))) {
        const auto n = static_cast<std::size_t>(number);
        in_order[n] = of_micro[0];
        result.counted += static_cast<std::int64_t>(of_micro[1]);
        std::copy_n(of_micro + 2, samples, result.sample_losses.data() + n * samples);
        std::copy_n(of_micro + 2 + samples, samples, result.sample_counts.data() + n * samples);
        std::copy_n(of_micro + 2 + 2 * samples, report.parts, taught.data() + n * report.parts);
        of_micro += report.size();
      }
    }
    from += losses.size() * report.size();
    result.stop_signal = std::max(result.stop_signal, static_cast<int>(from[0]));
    result.memory_bytes = std::max(result.memory_bytes, static_cast<std::int64_t>(from[1]));
  }
  const double sum = sum_in_order(in_order.data(), static_cast<std::int64_t>(in_order.size()));
  result.loss =
      without_sign_of_nan(sum / static_cast<double>(std::max<std::int64_t>(result.counted, 1)));
  note_parts(taught, result);
}

// Returns the factor that makes the gradient of the mean over all tokens, which the replicas have
// computed, that over the targets that count. It is exactly 1 if all do.
double TrainStep::mean_factor(const StepResult& result) const {
  const std::int64_t tokens = result.sequences * engine_.config().data.sequence;
  return result.counted == 0 ? 1.0
                             : static_cast<double>(tokens) / static_cast<double>(result.counted);
}

// Returns the kind of a wait for all ranks of the replica.
SpanKind TrainStep::kind_within_replica() const {
  return engine_.pp().size() > 1 ? SpanKind::stages : SpanKind::tensor;
}

// Each replica computes the norm by itself if it has the whole gradient.
double TrainStep::norm(const ExactSum& squares) {
  const bool sharded = engine_.chunks().front()->state.layout().level() > 0;
  const SpanTimer span(engine_.spans(), sharded ? SpanKind::replicas : kind_within_replica(),
                       "gradient norm");
  return gradient_norm(squares, sharded ? engine_.world() : engine_.siblings());
}

void TrainStep::judge_and_update(const ExactSum& squares, TrainingCounters& counters,
                                 StepResult& result) {
  result.grad_norm = without_sign_of_nan(norm(squares) * mean_factor(result) / result.loss_scale);
  const TrainConfig& config = engine_.config().train;
  const DivergenceConfig& policy = engine_.config().divergence;
  const auto overflow = judge_overflow(config, counters, result.loss, result.grad_norm);
  result.judgement = overflow ? *overflow : judge(policy, counters, result.loss, result.grad_norm);
  if (result.judgement.breaks_off()) {
    return;
  }
  ++counters.step;
  note_judged(policy, result.judgement, result.loss, result.grad_norm, counters);
  engine_.fp8().finish_step(counters.fp8);
  adapt_loss_scale(config, result.judgement, std::isfinite(result.grad_norm), counters);
  if (!result.judgement.updates()) {
    return;
  }
  update({.step = ++counters.updates,
          .lr = static_cast<float>(result.lr),
          .gradient_scale = static_cast<float>(
              clip_factor(result.grad_norm, static_cast<double>(engine_.config().optimizer.clip)) /
              result.loss_scale * mean_factor(result))});
}

void TrainStep::update(const OptimizerUpdate& step) {
  fault("step.optimizer");
  engine_.pass_hold();
  for (const auto& chunk : engine_.chunks()) {
    chunk->state.start_update(step);
  }
  if (faults_armed()) {
    expose_weights(*engine_.chunks().front());
  }
  const SpanTimer span(engine_.pp().size() > 1 ? engine_.spans() : nullptr, SpanKind::stages,
                       "tied embedding");
  refresh_tied_embedding(*engine_.chunks().front(), *engine_.chunks().back(), engine_.pp(),
                         engine_.context().stream());
}

}  // namespace trireme
