#include "src/train/metrics.h"

#include <chrono>
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/event_file.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/progress_bar.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// JSON knows no NaN and no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

std::string bits_of(double value) {
  return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

nlohmann::ordered_json to_json(const StepMetrics& m) {
  nlohmann::ordered_json json = {{"step", m.step},
                                 {"loss", number(m.loss)},
                                 {"loss_bits", bits_of(m.loss)},
                                 {"grad_norm", number(m.grad_norm)},
                                 {"lr", number(m.lr)},
                                 {"tokens", m.tokens},
                                 {"tokens_per_s", number(m.tokens_per_s)},
                                 {"step_ms", number(m.step_ms)},
                                 {"mfu", number(m.mfu)},
                                 {"data_wait_ms", number(m.data_wait_ms)},
                                 {"comm_exposed_ms", number(m.comm_exposed_ms)},
                                 {"checkpoint_stall_ms", number(m.checkpoint_stall_ms)},
                                 {"memory_bytes", m.memory_bytes},
                                 {"skipped_steps", m.skipped_steps},
                                 {"time", wall_clock_seconds()}};
  if (m.val_loss) {
    json["val_loss"] = number(*m.val_loss);
    json["val_loss_bits"] = bits_of(*m.val_loss);
  }
  return json;
}

// The words and order that sites' log scrapers know from Megatron-LM.
std::string step_line(const StepMetrics& m, std::int64_t last_step, std::int64_t global_batch) {
  std::string line = fmt::format(
      "iteration {:8}/{:8} | consumed samples: {:12} | elapsed time per iteration (ms): {:.1f} | "
      "throughput per GPU (TFLOP/s/GPU): {:.3f} | learning rate: {:.6E} | global batch size: {:5} "
      "| "
      "lm loss: {:.9E} | grad norm: {:.3f} | number of skipped iterations: {:3} |",
      m.step, last_step, m.samples, m.step_ms, m.flops_per_s_a_rank / 1e12, m.lr, global_batch,
      m.loss, m.grad_norm, m.skipped_steps);
  if (m.val_loss) {
    line += fmt::format(" validation loss: {:.9E} |", *m.val_loss);
  }
  return line;
}

}  // namespace

struct MetricsLog::State {
  State(const RunDirectory& directory, Log& to, std::int64_t last, std::int64_t batch)
      : run(directory), log(to), last_step(last), global_batch(batch) {}

  void complain(const char* what, const std::exception& error) {
    if (!complained) {
      log.warning(
          fmt::format("{} can't be written, training goes on without: {}", what, error.what()));
      complained = true;
    }
  }

  RunDirectory run;
  Log& log;
  std::int64_t last_step;
  std::int64_t global_batch;
  bool complained = false;
  std::optional<EventFile> events;
  ProgressBar bar;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::int64_t first_step = -1;
  double tokens_per_s = 0;
  double mfu = 0;
};

MetricsLog::MetricsLog(const RunDirectory& run, Log& log, std::int64_t last_step,
                       std::int64_t global_batch)
    : state_(std::make_unique<State>(run, log, last_step, global_batch)) {
  try {
    state_->events.emplace(run.tensorboard());
  } catch (const Error& error) {
    state_->complain("TensorBoard's event file", error);
  }
}

MetricsLog::~MetricsLog() = default;

void MetricsLog::rewind_to(std::int64_t step) {
  const auto path = state_->run.metrics();
  if (!std::filesystem::exists(path)) {
    return;
  }
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.value("step", std::int64_t{0}) <= step) {
      kept += line + "\n";
    }
  }
  write_file_durably(path, kept);
}

void MetricsLog::write(const StepMetrics& metrics) {
  State& s = *state_;
  s.tokens_per_s = metrics.tokens_per_s;
  s.mfu = metrics.mfu;
  s.bar.clear();
  s.log.plain(step_line(metrics, s.last_step, s.global_batch));
  try {
    const std::string line = to_json(metrics).dump() + "\n";
    File file = File::open_to_append(s.run.metrics());
    file.write(line.data(), static_cast<std::int64_t>(line.size()));
    file.close();
    if (s.events) {
      std::vector<Scalar> scalars = {{"train/loss", metrics.loss},
                                     {"train/grad_norm", metrics.grad_norm},
                                     {"train/lr", metrics.lr},
                                     {"speed/tokens_per_s", metrics.tokens_per_s},
                                     {"speed/step_ms", metrics.step_ms},
                                     {"speed/mfu", metrics.mfu},
                                     {"speed/data_wait_ms", metrics.data_wait_ms},
                                     {"speed/comm_exposed_ms", metrics.comm_exposed_ms}};
      if (metrics.val_loss) {
        scalars.push_back({"validation/loss", *metrics.val_loss});
      }
      s.events->write(metrics.step, wall_clock_seconds(), scalars);
    }
  } catch (const Error& error) {
    s.complain("metrics", error);
  }
}

void MetricsLog::tick(std::int64_t step, double loss) {
  State& s = *state_;
  if (s.first_step < 0) {
    s.first_step = step - 1;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - s.started;
  const double left = elapsed.count() / static_cast<double>(step - s.first_step) *
                      static_cast<double>(s.last_step - step);
  s.bar.show(
      static_cast<double>(step) / static_cast<double>(s.last_step),
      fmt::format("step {}/{} loss {:.4f} {} tokens/s MFU {:.0f}% {} left", step, s.last_step, loss,
                  format_count(s.tokens_per_s), 100 * s.mfu, format_seconds(left)));
}

}  // namespace trireme
