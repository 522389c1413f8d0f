#include "src/train/report/openmetrics.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "mpi/launch_environment.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_lines.h"
#include "src/base/replace_file.h"
#include "src/train/run/openmetrics_path.h"
#include "src/train/run/run_directory.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace {

constexpr double kPerMillisecond = 1e-3;

double number_of(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Calls `use` with each object in a file of JSON lines, which read() returns, if there is one.
template <class Read, class Use>
void for_each_line(const std::filesystem::path& path, Read read, Use use) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return;
  }
  try {
    (void)use_objects(read(path), [&](const nlohmann::json& line) {
      use(line);
      return true;
    });
  } catch (const Error&) {
    // Gauges that need the file are then left out or start anew.
  }
}

// Adds the time of a logged step, which stands for the steps since the previous one.
void add_step(PastTime& past, std::int64_t step, double step_ms, double stall_ms, double time) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(step - past.step, 0));
  const double ms = step_ms - (std::isfinite(stall_ms) ? stall_ms : 0);
  past.step = step;
  if (past.began == 0 && std::isfinite(time)) {
    past.began = time - (std::isfinite(step_ms) ? steps * step_ms * kPerMillisecond : 0);
  }
  if (std::isfinite(ms)) {
    past.useful += steps * std::max(ms, 0.0) * kPerMillisecond;
  }
}

std::string escaped_label(std::string_view text) {
  // JSON escapes the same characters, and replaces bytes that are not UTF-8.
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Writer adds one family per call, and none for a value that is not known.
class Writer {
 public:
  explicit Writer(std::string labels) : labels_(std::move(labels)) {}

  void gauge(std::string_view name, std::string_view help, double value,
             std::string_view more_labels = "") {
    text_ += fmt::format("# HELP trireme_{0} {1}\n# TYPE trireme_{0} gauge\n", name, help);
    sample(name, value, more_labels);
  }
  void known(std::string_view name, std::string_view help, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) {
      gauge(name, help, *value);
    }
  }
  // Adds a family with one sample for each source of energy that can be read.
  void by_source(std::string_view name, std::string_view help, const std::optional<double>& cpu,
                 const std::optional<double>& gpu) {
    if (cpu || gpu) {
      text_ += fmt::format("# HELP trireme_{0} {1}\n# TYPE trireme_{0} gauge\n", name, help);
      cpu ? sample(name, *cpu, ",source=\"cpu\"") : void();
      gpu ? sample(name, *gpu, ",source=\"gpu\"") : void();
    }
  }
  std::string str() const { return text_ + "# EOF\n"; }

 private:
  void sample(std::string_view name, double value, std::string_view more_labels) {
    const std::string number = std::isnan(value)   ? "NaN"
                               : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                                                   : fmt::format("{:.12g}", value);
    text_ += fmt::format("trireme_{}{{{}{}}} {}\n", name, labels_, more_labels, number);
  }

  std::string labels_;
  std::string text_;
};

std::optional<double> divided(const std::optional<double>& value, double by) {
  return value && by > 0 ? std::optional(*value / by) : std::nullopt;
}

void add_progress(Writer& w, const RunGauges& g) {
  const StepMetrics& m = g.metrics;
  w.gauge("run_active", "Whether the training loop is at work (1) or has ended in order (0).",
          g.is_active ? 1 : 0);
  w.gauge("updated_timestamp_seconds", "When this file was written, since 1970.", g.now);
  w.gauge("step", "Optimizer steps done so far.", static_cast<double>(g.step));
  w.gauge("steps", "Optimizer steps of the whole run (train.steps).", static_cast<double>(g.steps));
  w.gauge("ranks", "Ranks of the run.", static_cast<double>(g.ranks));
  if (g.past.restarts) {
    w.gauge("restarts", "Starts of the run's ranks by trireme launch before this one.",
            static_cast<double>(*g.past.restarts));
  }
  if (g.past.began > 0 && g.now > g.past.began) {
    w.gauge("run_began_timestamp_seconds", "When the first start of the run began, since 1970.",
            g.past.began);
    w.gauge("goodput_ratio",
            "Share of the time since the run began that went into steps that count.",
            std::min(g.past.useful / (g.now - g.past.began), 1.0));
  }
  if (m.step == 0) {
    return;  // nothing was logged yet
  }
  w.gauge("logged_step", "Step to which the metrics below belong.", static_cast<double>(m.step));
  w.gauge("loss", "Training loss of the logged step in nats per token.", m.loss);
  w.gauge("loss_mean", "Mean training loss since the step logged before.", m.loss_mean);
  w.known("cross_entropy", "Cross entropy with the data, a part of the loss with a teacher.",
          m.cross_entropy);
  w.known("kl_divergence", "Divergence from the teacher, the other part of the loss.",
          m.kl_divergence);
  w.known("validation_loss", "Latest validation loss of this start in nats per token.",
          g.validation_loss);
  w.gauge("gradient_norm", "Norm of the gradient before clipping.", m.grad_norm);
  w.gauge("learning_rate", "Learning rate of the logged step.", m.lr);
  w.gauge("tokens", "Tokens trained on so far.", static_cast<double>(m.tokens));
  w.gauge("skipped_steps", "Updates left out so far, because of a spike or overflow.",
          static_cast<double>(m.skipped_steps));
}

void add_speed(Writer& w, const StepMetrics& m) {
  w.known("tokens_per_second", "Throughput of the whole run.", m.tokens_per_s);
  w.known("step_seconds", "Time per step.", m.step_ms * kPerMillisecond);
  w.known("mfu_ratio", "Model FLOP/s divided by the measured rate of matrix products.", m.mfu);
  w.known("data_wait_seconds", "Time per step for which rank 0 waited for data.",
          m.data_wait_ms * kPerMillisecond);
  w.known("communication_wait_seconds", "Time per step for which rank 0 waited for other replicas.",
          m.comm_exposed_ms * kPerMillisecond);
  w.known("tensor_wait_seconds",
          "Time per step for which rank 0 waited for its tensor-parallel group.",
          m.tensor_wait_ms * kPerMillisecond);
  w.known("pipeline_wait_seconds",
          "Time per step for which rank 0 waited for other pipeline stages.",
          m.pipeline_wait_ms * kPerMillisecond);
  w.known("checkpoint_stall_seconds", "Time per step for which saves stalled rank 0.",
          m.checkpoint_stall_ms * kPerMillisecond);
  w.known("time_left_seconds", "Estimated time of the steps that are left.",
          divided(static_cast<double>(m.tokens_left), m.tokens_per_s));
  w.gauge("memory_bytes", "Resident memory of the rank that uses the most.",
          static_cast<double>(m.memory_bytes));
}

void add_energy(Writer& w, const StepMetrics& m, const EnergyConfig& factors) {
  w.by_source("power_watts", "Mean power since the step logged before.",
              divided(m.cpu_joules, m.energy_seconds), divided(m.gpu_joules, m.energy_seconds));
  w.by_source("energy_per_step_joules", "Energy per step, with saves and evaluations.",
              m.cpu_joules, m.gpu_joules);
  w.by_source("energy_per_token_joules", "Energy per token, with saves and evaluations.",
              divided(m.cpu_joules, m.step_tokens), divided(m.gpu_joules, m.step_tokens));
  const std::optional<double> joules = energy_per_step(m);
  if (joules) {
    w.known("carbon_per_step_grams", "Carbon dioxide per step by the site's factor.",
            factors.grams(*joules));
    w.known("price_per_step", "Price of a step's energy in the site's currency.",
            factors.price(*joules));
  }
}

}  // namespace

PastTime past_time_of(const std::filesystem::path& run, const TextReader& reader) {
  PastTime past;
  const auto read = [&](const std::filesystem::path& path) { return reader.read(path); };
  const auto read_plain = [](const std::filesystem::path& path) { return read_file(path); };
  for_each_line(RunDirectory(run).metrics(), read, [&](const nlohmann::json& line) {
    const double step = number_of(line, "step");
    if (step >= 0 && step <= static_cast<double>(kMostSteps)) {
      add_step(past, static_cast<std::int64_t>(step), number_of(line, "step_ms"),
               number_of(line, "checkpoint_stall_ms"), number_of(line, "time"));
    }
  });
  std::int64_t launches = 0;
  double first_event = 0;
  for_each_line(run / "journal.jsonl", read_plain, [&](const nlohmann::json& line) {
    const double time = number_of(line, "time");
    first_event = first_event == 0 && std::isfinite(time) ? time : first_event;
    launches += line.value("event", nlohmann::json()) == "launch" ? 1 : 0;
  });
  if (launches > 0) {
    past.restarts = launches - 1;  // the last one is this start's
  }
  if (first_event > 0) {
    past.began = past.began > 0 ? std::min(past.began, first_event) : first_event;
  }
  return past;
}

std::string openmetrics_text(const RunGauges& g) {
  std::string labels = "run=" + escaped_label(g.run);
  if (!g.slurm_job.empty()) {
    labels += ",slurm_job=" + escaped_label(g.slurm_job);
  }
  Writer w(labels);
  w.gauge("run_info", "What the ranks of the run compute on.", 1,
          ",device=" + escaped_label(g.metrics.device));
  add_progress(w, g);
  if (g.metrics.step > 0) {
    add_speed(w, g.metrics);
    add_energy(w, g.metrics, g.factors);
  }
  return w.str();
}

bool holds_foreign_metrics(const std::filesystem::path& file) {
  return std::filesystem::exists(file) &&
         read_file(file).find("\ntrireme_run_info{") == std::string::npos;
}

OpenMetricsFile::OpenMetricsFile(const RunConfig& config, std::int64_t ranks,
                                 const TextReader& reader)
    : path_(openmetrics_path(config)), every_(config.metrics.openmetrics_every) {
  const auto environment = process_environment();
  gauges_.run = config.run_name.empty() ? config.run_dir.string() : config.run_name;
  gauges_.slurm_job = environment("SLURM_JOB_ID").value_or("");
  gauges_.steps = config.train.steps;
  gauges_.ranks = ranks;
  gauges_.factors = config.energy;
  gauges_.past = past_time_of(config.run_dir, reader);
  gauges_.step = gauges_.past.step;
  if (gauges_.past.began == 0) {
    gauges_.past.began = wall_clock_seconds();
  }
}

void OpenMetricsFile::note(const StepMetrics& metrics) {
  add_step(gauges_.past, metrics.step, metrics.step_ms, metrics.checkpoint_stall_ms,
           wall_clock_seconds());
  gauges_.metrics = metrics;
  if (metrics.val_loss) {
    gauges_.validation_loss = metrics.val_loss;
  }
}

std::string OpenMetricsFile::tick(std::int64_t step) {
  gauges_.step = step;
  return since_ && since_->seconds() < every_ ? "" : write();
}

std::string OpenMetricsFile::finish() {
  gauges_.is_active = false;
  return write();
}

std::string OpenMetricsFile::write() {
  since_ = Stopwatch();
  gauges_.now = wall_clock_seconds();
  try {
    replace_text_file(path_, openmetrics_text(gauges_));
  } catch (const Error& error) {
    return std::exchange(has_failed_, true) ? "" : error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    return std::exchange(has_failed_, true) ? "" : error.what();
  }
  return "";
}

}  // namespace trireme
