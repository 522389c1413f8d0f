#include "src/train/recovery/logged_replay.h"

#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/data_error_in.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/json_lines.h"
#include "src/base/units.h"
#include "src/train/memory/held_memory.h"
#include "src/train/parts/training_parts.h"
#include "src/train/recovery/replay_start.h"
#include "src/train/recovery/step_records.h"

namespace trireme {
namespace {

struct Logged {
  double loss = 0;
  double grad_norm = 0;
};

// Returns NaN for a value that was logged as null because it was not finite.
double number_of(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>()
                                             : std::numeric_limits<double>::quiet_NaN();
}

// Returns the logged steps in (from, last], by step. Warns of damaged lines and skips them.
std::map<std::int64_t, Logged> read_logged(const std::filesystem::path& path, std::int64_t from,
                                           std::int64_t last, const TextReader& reader) {
  std::map<std::int64_t, Logged> logged;
  const DamagedLines damaged = use_objects(reader.read(path), [&](const nlohmann::json& line) {
    const bool is_step = is_metrics_line(line);
    const std::int64_t step = is_step ? line["step"].get<std::int64_t>() : -1;
    if (step > from && step <= last) {
      logged[step] = {number_of(line, "loss"), number_of(line, "grad_norm")};
    }
    return is_step;
  });
  warn_of(damaged, path);
  return logged;
}

// Returns the counters of the run's newest checkpoint, or initial ones without a checkpoint, as
// rank 0 reads them. Sets the step to the largest number.
TrainingCounters newest_counters(const std::filesystem::path& folder, Communicator& world) {
  const std::string text = run_on_root(world, [&] {
    for (const StepFolder& step : list_steps(folder)) {
      if (step.manifest) {
        try {
          return to_json(counters_of(step.manifest->meta)).dump();
        } catch (const DataError& error) {
          throw data_error_in((step.path / kManifestName).string(), error);
        }
      }
    }
    return std::string();
  });
  TrainingCounters counters =
      text.empty() ? TrainingCounters{} : counters_from_json(parse_json(text));
  counters.step = std::numeric_limits<std::int64_t>::max();
  return counters;
}

// Two values that are not finite count as equal, since the log does not distinguish them.
std::string difference_from(const Logged& logged, const StepResult& again) {
  const auto same_if_nan = [](double first, double value) {
    return std::isnan(first) && !std::isfinite(value) ? value : first;
  };
  return difference_of_sums(
      {0, same_if_nan(logged.loss, again.loss), same_if_nan(logged.grad_norm, again.grad_norm), {}},
      {0, again.loss, again.grad_norm, {}});
}

// Replays steps and compares them with their logged lines.
class Replay {
 public:
  Replay(const RunConfig& config, const TrainingHost& host, std::int64_t last);
  void run();

 private:
  void compare(std::int64_t step, const StepResult& again);
  void report() const;

  const RunConfig& config_;
  const TrainingHost& host_;
  std::int64_t last_;
  StartPoint start_;
  std::map<std::int64_t, Logged> logged_;  // filled on rank 0
  std::int64_t compared_ = 0;
  std::int64_t reached_ = 0;  // the latest step that was compared
};

StartPoint required_start(const RunConfig& config, const TrainingHost& host, std::int64_t last) {
  if (last < 1 || last > config.train.steps) {
    throw ConfigError(fmt::format("--replay {}: the run has steps 1 to {} (train.steps)", last,
                                  config.train.steps));
  }
  const TrainingCounters newest = newest_counters(config.checkpoint_dir(), host.world);
  const auto start = agreed_replay_start(host.world, config.checkpoint_dir(), newest, last);
  if (!start) {
    throw NotFound(fmt::format(
        "{} holds no checkpoint below step {} from which these steps can be replayed: the run has "
        "rewound since then and left out their data",
        config.checkpoint_dir().string(), last));
  }
  return *start;
}

Replay::Replay(const RunConfig& config, const TrainingHost& host, std::int64_t last)
    : config_(config), host_(host), last_(last), start_(required_start(config, host, last)) {
  const std::int64_t from = start_.step;
  run_on_root(host.world, [&] {
    logged_ = read_logged(RunDirectory(config.run_dir).metrics(), from, last, *host.text.reader);
    if (logged_.empty()) {
      throw NotFound(fmt::format("{} has no line for steps {} to {}: there is nothing to compare",
                                 RunDirectory(config.run_dir).metrics().string(), from + 1, last));
    }
    return std::string();
  });
}

void Replay::run() {
  TrainingParts parts(config_, host_, start_);
  for (std::int64_t step = start_.step + 1; step <= last_; ++step) {
    parts.enter("train", config_.deadline.step);
    const StepResult again = naming_held_memory(
        parts.engine, [&] { return parts.step->run(parts.counters, host_.stop.signal()); });
    compare(step, again);
    if (again.judgement.breaks_off() || again.stop_signal != 0) {
      break;
    }
  }
  if (host_.world.rank() == 0) {
    report();
  }
}

// Throws on every rank if the step's bits differ from those of its line.
void Replay::compare(std::int64_t step, const StepResult& again) {
  std::string differs;
  if (const auto found = logged_.find(step); found != logged_.end()) {
    differs = difference_from(found->second, again);
    ++compared_;
    reached_ = step;
    host_.log.info(fmt::format("step {}: loss {:.6g}, gradient norm {:.6g}: {}", step, again.loss,
                               again.grad_norm, differs.empty() ? "the same bits" : differs));
  }
  differs = broadcast_text(host_.world, differs, 0);
  if (!differs.empty()) {
    throw DeviceError(fmt::format(
        "replayed from step {}, step {} has different bits: {}. Unless the program, its kernels or "
        "the layout have changed since then, a processor, its memory or the network changed bits, "
        "then or now: replay the step once more, and drain the nodes that differ",
        start_.step, step, differs));
  }
}

void Replay::report() const {
  if (compared_ == 0) {
    host_.log.warning("the replay ended before it reached a logged step: nothing was compared");
    return;
  }
  const std::int64_t left = std::ssize(logged_) - compared_;
  host_.log.info(fmt::format(
      "replayed from step {}: {} up to step {} {} the same bits{}. If something stands out there, "
      "data or the optimizer caused it, not the hardware",
      start_.step, counted(compared_, "logged step"), reached_, compared_ == 1 ? "has" : "have",
      left == 0 ? ""
                : fmt::format("; the replay ended early, {} up to step {} were not reached",
                              counted(left, "logged step"), logged_.rbegin()->first)));
}

}  // namespace

void replay_logged(const RunConfig& config, const TrainingHost& host, std::int64_t last) {
  Replay(config, host, last).run();
}

}  // namespace trireme
