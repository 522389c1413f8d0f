#include "src/train/report/metrics.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <nlohmann/json.hpp>

#include "src/base/append_file.h"
#include "src/base/damaged_lines.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/json_lines.h"
#include "src/base/log.h"
#include "src/base/progress_bar.h"
#include "src/base/stopwatch.h"
#include "src/base/terminal.h"
#include "src/base/units.h"
#include "src/figures/event_file.h"
#include "src/train/report/openmetrics.h"
#include "src/train/report/progress_lines.h"

namespace trireme {
namespace {

// JSON has neither NaN nor infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// Returns null for a value that is not known.
nlohmann::json number(const std::optional<double>& value, double divisor = 1) {
  return value && divisor > 0 ? number(*value / divisor) : nlohmann::json(nullptr);
}

std::string bits_of(double value) {
  return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

// Adds what was only measured for saves, and what the site's factors make of the energy.
void add_energy(nlohmann::ordered_json& json, const StepMetrics& m, const EnergyConfig& factors) {
  if (m.saves > 0) {
    json["gpu_joules_per_checkpoint"] = number(m.gpu_save_joules);
    json["cpu_joules_per_checkpoint"] = number(m.cpu_save_joules);
  }
  const std::optional<double> joules = energy_per_step(m);
  if (factors.co2_grams_per_kwh > 0) {
    json["co2_grams_per_step"] = joules ? number(factors.grams(*joules)) : nlohmann::json(nullptr);
  }
  if (factors.price_per_kwh > 0) {
    json["price_per_step"] = joules ? number(factors.price(*joules)) : nlohmann::json(nullptr);
  }
}

// Adds the sources of a mixture, by name.
void add_sources(nlohmann::ordered_json& json, const StepMetrics& m) {
  for (const SourceMetrics& source : m.sources) {
    json["sources"][source.name] = {{"loss", number(source.loss)},
                                    {"loss_bits", bits_of(source.loss)},
                                    {"tokens", source.tokens},
                                    {"epochs", number(source.epochs)}};
  }
}

void add_validation(nlohmann::ordered_json& json, const StepMetrics& m) {
  if (m.val_loss) {
    json["val_loss"] = number(*m.val_loss);
    json["val_loss_bits"] = bits_of(*m.val_loss);
  }
  for (const ValidationLoss& set : m.val_losses) {
    json["val_losses"][set.name] = number(set.loss);
  }
}

nlohmann::ordered_json to_json(const StepMetrics& m, const EnergyConfig& factors) {
  nlohmann::ordered_json json = {{"step", m.step},
                                 {"loss", number(m.loss)},
                                 {"loss_bits", bits_of(m.loss)},
                                 {"loss_mean", number(m.loss_mean)},
                                 {"grad_norm", number(m.grad_norm)},
                                 {"lr", number(m.lr)},
                                 {"tokens", m.tokens},
                                 {"tokens_per_s", number(m.tokens_per_s)},
                                 {"step_ms", number(m.step_ms)},
                                 {"mfu", number(m.mfu)},
                                 {"data_wait_ms", number(m.data_wait_ms)},
                                 {"comm_exposed_ms", number(m.comm_exposed_ms)},
                                 {"tensor_wait_ms", number(m.tensor_wait_ms)},
                                 {"pipeline_wait_ms", number(m.pipeline_wait_ms)},
                                 {"checkpoint_stall_ms", number(m.checkpoint_stall_ms)},
                                 {"memory_bytes", m.memory_bytes},
                                 {"skipped_steps", m.skipped_steps},
                                 {"device", m.device},
                                 {"gpu_joules_per_step", number(m.gpu_joules)},
                                 {"gpu_joules_per_token", number(m.gpu_joules, m.step_tokens)},
                                 {"gpu_watts", number(m.gpu_joules, m.energy_seconds)},
                                 {"cpu_joules_per_step", number(m.cpu_joules)},
                                 {"cpu_joules_per_token", number(m.cpu_joules, m.step_tokens)},
                                 {"cpu_watts", number(m.cpu_joules, m.energy_seconds)},
                                 {"time", wall_clock_seconds()}};
  if (m.device_waits) {
    json["device_waits"] = number(*m.device_waits);
    json["device_allocations"] = m.device_allocations;
    json["device_graphs"] = number(m.device_graphs);
  }
  if (m.loss_scale) {
    json["loss_scale"] = *m.loss_scale;
    json["overflows"] = m.overflows;
  }
  if (m.cross_entropy && m.kl_divergence) {
    json["cross_entropy"] = number(*m.cross_entropy);
    json["kl_divergence"] = number(*m.kl_divergence);
  }
  add_sources(json, m);
  add_validation(json, m);
  add_energy(json, m, factors);
  return json;
}

std::vector<Scalar> scalars_of(const StepMetrics& m) {
  std::vector<Scalar> scalars = {{"train/loss", static_cast<float>(m.loss)},
                                 {"train/loss_mean", static_cast<float>(m.loss_mean)},
                                 {"train/grad_norm", static_cast<float>(m.grad_norm)},
                                 {"train/lr", static_cast<float>(m.lr)},
                                 {"speed/tokens_per_s", static_cast<float>(m.tokens_per_s)},
                                 {"speed/step_ms", static_cast<float>(m.step_ms)},
                                 {"speed/mfu", static_cast<float>(m.mfu)},
                                 {"speed/data_wait_ms", static_cast<float>(m.data_wait_ms)},
                                 {"speed/comm_exposed_ms", static_cast<float>(m.comm_exposed_ms)}};
  if (m.loss_scale) {
    scalars.emplace_back("train/loss_scale", static_cast<float>(*m.loss_scale));
  }
  if (m.cross_entropy && m.kl_divergence) {
    scalars.emplace_back("train/cross_entropy", static_cast<float>(*m.cross_entropy));
    scalars.emplace_back("train/kl_divergence", static_cast<float>(*m.kl_divergence));
  }
  if (m.val_loss) {
    scalars.emplace_back("validation/loss", static_cast<float>(*m.val_loss));
  }
  for (const SourceMetrics& source : m.sources) {
    scalars.emplace_back("train/loss/" + source.name, static_cast<float>(source.loss));
  }
  for (const ValidationLoss& set : m.val_losses) {
    scalars.emplace_back("validation/loss/" + set.name, static_cast<float>(set.loss));
  }
  return scalars;
}

// Returns the step in a line of metrics.jsonl, or nothing for a line that a crash cut short.
std::optional<std::int64_t> step_of(const nlohmann::json& line) {
  return line.is_object() && is_metrics_line(line) ? std::optional(line["step"].get<std::int64_t>())
                                                   : std::nullopt;
}

// Removes the lines after `step`, since this start computes those steps again, and damaged ones,
// which are returned.
DamagedLines forget_steps_after(const std::filesystem::path& path, std::int64_t step,
                                const RunText& text) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return {};
  }
  std::string kept;
  bool forgot = false;
  const DamagedLines damaged = use_lines(text.reader->read(path), [&](std::string_view line) {
    const auto at = step_of(parse_json_line(line));
    if (at && *at <= step) {
      kept.append(line).append("\n");
    } else {
      forgot = true;
    }
    return at.has_value();
  });
  if (forgot) {
    write_run_file(path, kept, text.sealer.get());
  }
  return damaged;
}

}  // namespace

std::optional<double> energy_per_step(const StepMetrics& m) {
  const bool has_gpus = m.device != "cpu";
  if (!m.cpu_joules || (has_gpus && !m.gpu_joules)) {
    return std::nullopt;
  }
  return *m.cpu_joules + m.gpu_joules.value_or(0);
}

std::optional<double> logged_validation_loss(const std::filesystem::path& metrics,
                                             std::int64_t step, const TextReader& reader) {
  std::optional<double> loss;
  std::string text;
  try {
    text = reader.read(metrics);
  } catch (const Error&) {
    return std::nullopt;  // there is none, or MetricsLog says why it goes on without it
  }
  (void)use_objects(text, [&](const nlohmann::json& line) {
    if (step_of(line) == step && line.contains("val_loss")) {
      const nlohmann::json& value = line["val_loss"];
      loss = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    }
    return true;
  });
  return loss;
}

struct MetricsLog::State {
  State(const RunDirectory& directory, Log& to, const MetricsPlan& what, RunText how)
      : run(directory),
        log(to),
        plan(what),
        text(std::move(how)),
        lines_of_progress(what.first_step, what.last_step, 0,
                          [what](std::int64_t step) { return what.samples_before(step); }) {
    if (terminal_columns() > 0 && plan.format == "plain") {
      bar.emplace("train", plan.last_step, std::chrono::seconds{0},
                  [what](std::int64_t step) { return what.samples_before(step); });
    }
  }

  // Failures to open the files do not stop the training; each is reported once.
  template <class Open>
  void attempt(const char* what, Open open) {
    try {
      open();
    } catch (const Error& error) {
      log.warning(
          fmt::format("cannot write {}, training continues without: {}", what, error.what()));
    }
  }

  // Written is a file, the noun for its entries, and whether the loss of entries was reported.
  struct Written {
    const AppendFile* file;
    const char* noun;
    bool& reported;
  };
  std::vector<Written> files() {
    std::vector<Written> all;
    if (lines) {
      all.push_back({&*lines, "line", lost_lines});
    }
    if (events) {
      all.push_back({&events->file(), "record", lost_events});
    }
    return all;
  }
  void report_first_losses(std::int64_t step) {
    for (const Written& written : files()) {
      if (written.file->dropped() > 0 && !written.reported) {
        log.warning(fmt::format("{}; {}s are missing from step {} on, training continues",
                                written.file->first_failure(), written.noun, step));
        written.reported = true;
      }
    }
  }
  void report_losses() {
    for (const Written& written : files()) {
      if (written.file->dropped() > 0) {
        log.warning(fmt::format("{} lacks {} that could not be written",
                                written.file->path().string(),
                                counted(written.file->dropped(), written.noun)));
      }
    }
  }

  void report_openmetrics(const std::string& failure) {
    if (!failure.empty()) {
      log.warning(fmt::format("metrics.openmetrics: {}; training continues", failure));
    }
  }

  RunDirectory run;
  Log& log;
  MetricsPlan plan;
  RunText text;
  Stopwatch watch;
  ProgressLines lines_of_progress;  // used if there is no bar
  std::optional<AppendFile> lines;
  std::optional<EventFile> events;
  std::optional<OpenMetricsFile> openmetrics;
  bool lost_lines = false;  // whether lost lines were reported
  bool lost_events = false;
  std::optional<ProgressBar> bar;
  std::string detail;
};

MetricsLog::MetricsLog(const RunDirectory& run, Log& log, const MetricsPlan& plan, RunText text)
    : state_(std::make_unique<State>(run, log, plan, std::move(text))) {
  State& s = *state_;
  const RunSealer* const sealer = s.text.sealer.get();
  s.attempt("metrics.jsonl", [&] {
    const DamagedLines removed = forget_steps_after(run.metrics(), plan.first_step, s.text);
    if (removed.count > 0) {
      log.warning(fmt::format("{}: removed {}", run.metrics().string(), removed.to_text()));
    }
    s.lines.emplace(AppendFile::open_lines(
        run.metrics(), sealer == nullptr ? nullptr : sealer->sealer(run.metrics())));
  });
  s.attempt("events for TensorBoard",
            [&] { s.events.emplace(run.tensorboard(), plan.first_step + 1, sealer); });
  s.watch = Stopwatch();
  if (s.bar) {
    s.bar->update(plan.first_step);
  }
}

void MetricsLog::keep_openmetrics(const RunConfig& config, std::int64_t ranks) {
  if (!config.metrics.openmetrics.empty()) {
    state_->openmetrics.emplace(config, ranks, *state_->text.reader);
    state_->report_openmetrics(state_->openmetrics->tick(state_->plan.first_step));
  }
}

MetricsLog::~MetricsLog() {
  if (state_->bar) {
    state_->bar->finish();
  }
  state_->report_losses();
}

void MetricsLog::write(const StepMetrics& metrics) {
  State& s = *state_;
  const nlohmann::ordered_json json = to_json(metrics, s.plan.energy);
  if (s.lines) {
    s.lines->append(json.dump() + "\n");
  }
  if (s.events) {
    s.events->scalars(metrics.step, scalars_of(metrics));
  }
  if (s.openmetrics) {
    s.openmetrics->note(metrics);
  }
  s.report_first_losses(metrics.step);
  s.detail = fmt::format("loss {:.4f}  {} tokens/s  MFU {:.0f}%", metrics.loss_mean,
                         format_count(metrics.tokens_per_s), 100 * metrics.mfu);
  if (metrics.val_loss) {
    s.detail += fmt::format("  validation {:.4f}", *metrics.val_loss);
  }
  if (s.bar) {
    s.log.event("step", json);
  } else {
    s.log.event("step", json,
                s.plan.format == "megatron" ? megatron_step_line(metrics, s.plan)
                                            : plain_step_line(metrics, s.plan));
    s.lines_of_progress.other_line(s.watch.seconds());
  }
}

void MetricsLog::tick(std::int64_t step) {
  State& s = *state_;
  if (s.openmetrics) {
    s.report_openmetrics(s.openmetrics->tick(step));
  }
  if (s.bar) {
    s.bar->update(step, s.detail);
    return;
  }
  const std::string line = s.lines_of_progress.after_step(step, s.watch.seconds());
  if (!line.empty()) {
    s.log.info(line);
  }
}

void MetricsLog::finish() {
  if (state_->bar) {
    state_->bar->finish();
  }
  if (state_->openmetrics) {
    state_->report_openmetrics(state_->openmetrics->finish());
  }
}

}  // namespace trireme
