#include "src/train/train_step.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <sys/resource.h>
#include <unistd.h>

#include "src/base/stopwatch.h"
#include "src/optim/gradient_norm.h"

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
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

namespace {

// The sign of a NaN says nothing, but it would be printed.
double without_sign_of_nan(double x) { return std::isnan(x) ? std::abs(x) : x; }

}  // namespace

StepResult TrainStep::run(TrainingCounters& counters, int signal) {
  StepResult result;
  result.lr = learning_rate(parts_.config.optimizer.schedule, counters.step);
  const std::vector<double> losses = run_micro_batches(counters.step, result);
  // The small exchange queues up behind the gradients: together they are what computing waits for.
  const Stopwatch exposed;
  share(losses, signal, result);
  const View gradient = parts_.reducer.finish_step();
  result.comm_exposed_ms = exposed.milliseconds();
  update(counters, gradient, result);
  ++counters.step;
  return result;
}

std::vector<double> TrainStep::run_micro_batches(std::int64_t step, StepResult& result) {
  const RunConfig& config = parts_.config;
  const LeafRange leaves = parts_.reducer.micro_batches();
  const auto tokens = static_cast<double>(config.tokens_a_step());
  Run run{.kernels = parts_.kernels,
          .stream = parts_.stream,
          .pool = parts_.pool,
          .parameters = parts_.parameters,
          .training = true,
          .dropout = {config.train.seed, static_cast<std::uint32_t>(step)},
          .first_sample = 0,
          .gradients = &parts_.reducer};
  std::vector<double> losses;
  const auto waited_before = parts_.loader.wait_time();
  parts_.reducer.begin_step();
  for (std::int64_t m = leaves.lo; m < leaves.hi; ++m) {
    const char* const phase = parts_.recorder.enter_phase("data_load");
    const LoadedMicroBatch& loaded = parts_.loader.next();
    parts_.recorder.enter_phase(phase);
    const MicroBatch micro_batch{loaded.batch, loaded.time, loaded.ids, loaded.targets};
    parts_.reducer.begin_micro_batch(m);
    run.first_sample = m * config.train.micro_batch;
    losses.push_back(
        parts_.model.forward_backward(micro_batch, static_cast<float>(1 / tokens), run));
  }
  const std::chrono::duration<double, std::milli> waited =
      parts_.loader.wait_time() - waited_before;
  result.data_wait_ms = waited.count();
  return losses;
}

// One small all-gather a step carries all that ranks have to tell each other.
void TrainStep::share(const std::vector<double>& losses, int signal, StepResult& result) {
  constexpr std::size_t kExtra = 2;
  const std::size_t a_rank = losses.size() + kExtra;
  const auto ranks = static_cast<std::size_t>(parts_.dp.size());
  std::vector<double> all(a_rank * ranks, 0.0);
  double* own = all.data() + a_rank * static_cast<std::size_t>(parts_.dp.rank());
  std::copy(losses.begin(), losses.end(), own);
  own[losses.size()] = signal;
  own[losses.size() + 1] = static_cast<double>(resident_bytes());
  parts_.dp.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::f64, {}}).wait();

  std::vector<double> in_order;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double* from = all.data() + a_rank * rank;
    in_order.insert(in_order.end(), from, from + losses.size());
    result.stop_signal = std::max(result.stop_signal, static_cast<int>(from[losses.size()]));
    result.memory_bytes =
        std::max(result.memory_bytes, static_cast<std::int64_t>(from[losses.size() + 1]));
  }
  const auto tokens = static_cast<double>(parts_.config.tokens_a_step());
  result.loss = without_sign_of_nan(
      sum_in_order(in_order.data(), static_cast<std::int64_t>(in_order.size())) / tokens);
}

void TrainStep::update(TrainingCounters& counters, const View& gradient, StepResult& result) {
  result.grad_norm = without_sign_of_nan(
      gradient_norm(parts_.parameters, gradient, parts_.kernels, parts_.stream));
  if (!std::isfinite(result.loss) || !std::isfinite(result.grad_norm)) {
    result.skipped = true;
    ++counters.skipped_steps;
    ++counters.skipped_in_a_row;
    return;
  }
  counters.skipped_in_a_row = 0;
  const AdamWUpdate step{.step = ++counters.updates,
                         .lr = static_cast<float>(result.lr),
                         .gradient_scale = static_cast<float>(clip_factor(
                             result.grad_norm, static_cast<double>(parts_.config.optimizer.clip)))};
  parts_.optimizer.step(gradient, step, parts_.kernels, parts_.stream);
}

}  // namespace trireme
