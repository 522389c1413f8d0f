#include "src/app/launch/run_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <vector>

#include <nlohmann/json.hpp>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "slurm/launch/run_files.h"
#include "slurm/policy/verdict.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/is_locked.h"
#include "src/base/json_lines.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_directory.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

std::string contents_of(const fs::path& path) {
  std::error_code gone;
  try {
    return fs::is_regular_file(path, gone) ? read_file(path, 1 << 20) : "";
  } catch (const PolicyError&) {
    throw;
  } catch (const Error&) {
    return "";
  }
}

std::optional<double> number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                     : std::nullopt;
}

// Returns the number if it is within [0, most]; a number beyond is damage, and counts as missing.
std::optional<double> number_up_to(double most, const json& object, const char* name) {
  const std::optional<double> value = number(object, name);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

// Returns the seconds since the epoch, if they are before the year 10000.
std::optional<double> time_of(const json& object) {
  return number_up_to(253'402'300'799, object, "time");
}

// Returns a number of steps or attempts; 0 if it is missing.
std::int64_t whole(const json& object, const char* name) {
  constexpr auto kMost = static_cast<double>(kMostSteps);
  return static_cast<std::int64_t>(number_up_to(kMost, object, name).value_or(0));
}

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns the checkpoint folder of the run, or "" if it is unknown. A relative checkpoint.dir
// starts at the folder in which the run was started. That is known if the run's path ends with a
// relative run.dir.
fs::path checkpoints_of(const fs::path& run, const RunConfig& config) {
  const fs::path& checkpoints = config.checkpoint.dir;
  if (checkpoints.empty()) {
    return run / "checkpoints";
  }
  if (checkpoints.is_absolute()) {
    return checkpoints;
  }
  std::error_code none;
  fs::path base = fs::canonical(run, none);
  for (fs::path rest = config.run_dir.lexically_normal(); !rest.empty();
       rest = rest.parent_path()) {
    const fs::path name = rest.filename();
    if (rest.is_absolute() || (name != base.filename() && name != "." && !name.empty())) {
      return "";
    }
    base = name == base.filename() ? base.parent_path() : base;
  }
  return base / checkpoints;
}

// Sets the number of steps of the run, and returns its checkpoint folder, or "" if it is unknown.
fs::path add_config(const fs::path& run, RunState& state) {
  const std::array<const char*, 1> no_environment = {nullptr};
  try {
    const RunConfig config = load_run_config({.file = run / "config.yaml",
                                              .arguments = {},
                                              .environment = no_environment.data(),
                                              .site = {}})
                                 .config;
    state.steps = config.train.steps;
    return checkpoints_of(run, config);
  } catch (const Error&) {
    return run / "checkpoints";  // written by another version, or without its data
  }
}

void add_metrics(const std::vector<json>& lines, RunState& state) {
  constexpr std::ptrdiff_t kLatest = 10;
  constexpr double kMostStepMs = 1e12;  // 30 years
  double milliseconds = 0;
  int count = 0;
  for (auto line = lines.end() - std::min(kLatest, std::ssize(lines)); line != lines.end();
       ++line) {
    if (const auto step = number_up_to(static_cast<double>(kMostSteps), *line, "step")) {
      state.step = state.loss_step = static_cast<std::int64_t>(*step);
    }
    state.loss = number(*line, "loss");
    const auto device = line->find("device");  // missing in lines of older versions
    state.device = device != line->end() && device->is_string() ? device->get<std::string>() : "";
    state.loss_mean = number(*line, "loss_mean");
    state.updated = time_of(*line);
    if (const auto step_ms = number_up_to(kMostStepMs, *line, "step_ms")) {
      milliseconds += *step_ms;
      ++count;
    }
  }
  if (count > 0) {
    state.step_ms = milliseconds / count;
  }
}

// Returns the last lines of metrics.jsonl. If no key opens it, the state says so.
std::vector<json> metrics_of(const fs::path& run, const TextReader& reader, RunState& state) {
  const fs::path path = run / "metrics.jsonl";
  try {
    LastLines lines = last_json_lines(path, reader, kLastBytes, is_metrics_line);
    state.damaged_metrics = lines.damaged;
    return std::move(lines.objects);
  } catch (const PolicyError& error) {
    if (!is_sealed_file(path)) {
      throw;
    }
    state.metrics_are_encrypted = true;
    state.why_no_metrics = error.what();
    return {};
  }
}

void add_journal(const std::vector<json>& events, RunState& state) {
  for (const json& event : events) {
    const std::string name = text_of(event, "event");
    const std::string cause = text_of(event, "cause");
    if (name == "begin") {
      state.job = text_of(event, "slurm_job");
    } else if (name == "attempt_end" && cause != "finished" && cause != "stopped" &&
               !is_refused_start(event)) {
      state.last_fault =
          RunState::Fault{time_of(event).value_or(0), whole(event, attempt_key(event)), cause,
                          text_of(event, "what")};
    } else if (name == "status" && event.contains("rank0") && event["rank0"].is_object()) {
      state.step = std::max(state.step, whole(event["rank0"], "step"));
    }
    if (const auto time = time_of(event)) {
      state.updated = std::max(state.updated.value_or(0), *time);
    }
  }
}

void add_end(const fs::path& run, RunState& state) {
  try {
    if (const auto done = RunDirectory(run).done_step()) {
      state.state = "finished";
      state.step = std::max(state.step, *done);
      return;
    }
  } catch (const PolicyError&) {
    throw;                        // who may not read DONE cannot tell how the run has ended
  } catch (const Error& error) {  // `trireme train` would fail with the same error
    state.state = "failed";
    state.code = static_cast<int>(error.exit_code());
    state.reason = error.what();
    return;
  }
  const std::string text = contents_of(run / "exit_reason.json");
  const auto reason = parse_exit_reason(text);
  if (!reason) {
    state.state = "interrupted";
    state.exit_reason_is_damaged = !text.empty();
    return;
  }
  // A code above 128 stands for a signal that ended the ranks without a save.
  state.state = reason->code == static_cast<int>(ExitCode::requeue) ? "stopped"
                : reason->code > 128                                ? "interrupted"
                                                                    : "failed";
  state.step = std::max(state.step, reason->step);
  state.code = reason->code;
  state.reason = reason->message;
}

// Returns the local date and time of seconds since the epoch, of which 0 means unknown.
std::string date_of(double seconds) {
  if (seconds == 0) {
    return "unknown time";
  }
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %T", &parts)};
}

}  // namespace

void check_run_folder(const fs::path& run) {
  std::error_code error;
  (void)fs::status(run / "config.yaml", error);
  if (error == std::errc::permission_denied) {
    throw_errno(EACCES, "read", run);
  }
  if (!fs::exists(run, error)) {
    throw NotFound(fmt::format("{}: no such folder: give the run.dir of a run", run.string()));
  }
}

RunState state_of_run(const fs::path& run, const TextReader& reader) {
  check_run_folder(run);
  RunState state;
  const std::vector<json> metrics = metrics_of(run, reader, state);
  const auto [journal, damaged_journal] =
      last_json_lines(run / "journal.jsonl", kLastBytes, is_journal_line);
  state.damaged_journal = damaged_journal;
  std::error_code gone;
  if (metrics.empty() && journal.empty() && !fs::exists(run / "config.yaml", gone) &&
      !fs::exists(run / ".lock", gone)) {
    throw NotFound(fmt::format(
        "{} is not the folder of a run: give the run.dir of a run that has been started",
        run.string()));
  }
  add_metrics(metrics, state);
  add_journal(journal, state);
  const fs::path checkpoints = add_config(run, state);
  if (is_locked(run / ".lock")) {
    state.state = "running";
    if (state.steps > state.step && state.step_ms) {
      state.seconds_left = 1e-3 * *state.step_ms * static_cast<double>(state.steps - state.step);
    }
  } else if (is_locked(run / ".launch.lock")) {
    state.state = "starting";
  } else {
    add_end(run, state);
    // A stop saves a step that need not be one of those that are logged.
    state.step = std::max(state.step, RunFiles(run, checkpoints).durable_step().step);
  }
  return state;
}

std::string to_text(const RunState& state, const fs::path& run) {
  std::string text =
      fmt::format("run         {}\nstate       {}", printable(run.string()), state.state);
  if (!state.reason.empty()) {
    text += fmt::format(": {} (exit code {})", printable(joined_lines(state.reason)), state.code);
  }
  text += fmt::format("\nstep        {}{}\n", state.step,
                      state.steps > 0 ? fmt::format(" of {}", state.steps) : "");
  if (state.seconds_left) {
    text += fmt::format("time left   {}\n", format_seconds(*state.seconds_left));
  }
  if (const auto loss = state.loss_mean ? state.loss_mean : state.loss) {
    text += fmt::format("loss        {:.5g} (step {})\n", *loss, state.loss_step);
  }
  if (state.metrics_are_encrypted) {
    text +=
        fmt::format("metrics     not shown: {}\n", printable(joined_lines(state.why_no_metrics)));
  }
  if (!state.device.empty()) {
    text += fmt::format("device      {}\n", printable(state.device));
  }
  if (state.step_ms) {
    text += fmt::format("step time   {}\n", format_seconds(1e-3 * *state.step_ms));
  }
  if (state.updated) {
    text += fmt::format("updated     {}\n", date_of(*state.updated));
  }
  if (!state.job.empty()) {
    text += fmt::format("Slurm job   {}\n", printable(state.job));
  }
  if (state.last_fault) {
    text += fmt::format("last fault  {}, attempt {}: {}: {}\n", date_of(state.last_fault->time),
                        state.last_fault->attempt, printable(state.last_fault->cause),
                        printable(state.last_fault->what));
  }
  return text;
}

nlohmann::ordered_json to_json(const RunState& state, const fs::path& run) {
  const auto known = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? nlohmann::ordered_json(*value)
                                          : nlohmann::ordered_json();
  };
  nlohmann::ordered_json fault;
  if (state.last_fault) {
    fault = {{"time", state.last_fault->time},
             {"attempt", state.last_fault->attempt},
             {"cause", state.last_fault->cause},
             {"what", state.last_fault->what}};
  }
  return {{"schema", "trireme-status-2"},
          {"run", run.string()},
          {"state", state.state},
          {"code", state.code},
          {"reason", state.reason},
          {"step", state.step},
          {"steps", state.steps},
          {"seconds_left", known(state.seconds_left)},
          {"loss", known(state.loss)},
          {"loss_mean", known(state.loss_mean)},
          {"loss_step", state.loss_step > 0 ? nlohmann::ordered_json(state.loss_step)
                                            : nlohmann::ordered_json()},
          {"step_ms", known(state.step_ms)},
          {"device",
           state.device.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(state.device)},
          {"updated", known(state.updated)},
          {"metrics_are_encrypted", state.metrics_are_encrypted},
          {"slurm_job", state.job},
          {"last_fault", fault}};
}

}  // namespace trireme
