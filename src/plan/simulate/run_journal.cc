#include "src/plan/simulate/run_journal.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/base/config_tree.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr double kSecondsOfDay = 86400;
// A fault hits while the step after the last one is computed.
constexpr double kWithinAStep = 0.5;
constexpr std::string_view kFinished = "finished";

class Mean {
 public:
  void add(double value) {
    total_ += std::max(0.0, value);
    ++count_;
  }
  double value_or(double otherwise) const {
    return count_ > 0 ? total_ / static_cast<double>(count_) : otherwise;
  }
  std::int64_t count() const { return count_; }

 private:
  double total_ = 0;
  std::int64_t count_ = 0;
};

// cause: as in AttemptAccount. A killed launch has none: its nodes lose their memory at once, like
// those of a site.
JobFaultKind kind_of(const std::string& cause) {
  if (cause.empty()) {
    return JobFaultKind::site;
  }
  if (cause == "stopped") {
    return JobFaultKind::stop;
  }
  if (cause == "hang" || cause == "communication") {
    return JobFaultKind::hang;
  }
  return cause == "node_death" || cause == "device" ? JobFaultKind::node : JobFaultKind::process;
}

double seconds(const Account& account, TimeCause cause) {
  return account.seconds[static_cast<std::size_t>(cause)];
}

bool is_fault(const AttemptAccount& attempt) {
  return attempt.cause != kFinished && attempt.cause != "stopped" && attempt.cause != "running" &&
         attempt.cause != kNotRecorded;
}

class JournalReader {
 public:
  JournalReader(const Account& account, const JobModel::Checkpoint& settings)
      : account_(account), settings_(settings) {
    measure_steps();
    measure_times();
  }

  RunJournal read() {
    RunJournal journal;
    journal.wall = account_.wall;
    journal.goodput = account_.effective_ratio();
    journal.model = model();
    journal.replay = journal.model;
    JobModel& replay = journal.replay;
    // Waits for nodes are part of the measured times to exclude.
    replay.spares = std::ssize(account_.attempts) + replay.nodes;
    replay.times.spread = 0;
    replay.times.finish = finish_.value_or(0);
    replay.checkpoint.memory_seconds = replay.checkpoint.disk_seconds = 0;
    for (std::size_t i = 0; i < account_.attempts.size(); ++i) {
      add_fault(i, journal.faults);
    }
    journal.faults.per_attempt = true;
    replay.days = account_.wall / kSecondsOfDay;
    if (const AttemptAccount& last = account_.attempts.back(); last.cause == kFinished) {
      replay.steps = static_cast<double>(last.to_step);
      replay.days *= 10;  // the steps end it
    }
    check_replay(replay);
    return journal;
  }

 private:
  // Returns whether the attempt is the first one of its launch.
  bool is_fresh(std::size_t i) const {
    return i == 0 || account_.attempts[i - 1].launch != account_.attempts[i].launch;
  }

  void measure_steps() {
    double steps = 0;
    double saves = 0;
    for (const AttemptAccount& attempt : account_.attempts) {
      const double done =
          static_cast<double>(std::max<std::int64_t>(0, attempt.to_step - attempt.from_step));
      steps += attempt.from_step < 0 ? 0 : done;
      const auto saves_to = [&](std::int64_t step) {
        const std::int64_t every = std::max<std::int64_t>(1, settings_.memory_every.integer > 0
                                                                 ? settings_.memory_every.integer
                                                                 : settings_.every.integer);
        return static_cast<double>(step / every);
      };
      if (attempt.from_step >= 0 && done > 0) {
        saves += saves_to(attempt.to_step) - saves_to(attempt.from_step);
      }
      good_ends_ += attempt.cause == kFinished || attempt.cause == "stopped" ? 1 : 0;
    }
    if (!(steps > 0) || account_.attempts.empty()) {
      throw DataError(
          "the journal has no attempt that finished a step, so there is nothing to learn from it");
    }
    step_seconds_ = (seconds(account_, TimeCause::train) + seconds(account_, TimeCause::redone) +
                     seconds(account_, TimeCause::evaluate)) /
                    steps;
    saves += good_ends_;
    stall_ = saves > 0 ? seconds(account_, TimeCause::checkpoint) / saves : 0;
    if (good_ends_ > 0) {
      finish_.add(seconds(account_, TimeCause::finish) / good_ends_);
    }
  }

  // The replay has its own faults; only its number of saves could be beyond all bounds.
  static void check_replay(JobModel replay) {
    try {
      replay.rates = {};
      replay.rates.source = "none";
      check_job_model(replay);
    } catch (const ConfigError& error) {
      throw DataError(fmt::format("the journal can't be that of a run: {}", error.what()));
    }
  }

  void measure_times() {
    double started = 0;
    for (std::size_t i = 0; i < account_.attempts.size(); ++i) {
      const AttemptAccount& attempt = account_.attempts[i];
      const bool fresh = is_fresh(i);
      if (attempt.first_step >= 0) {
        const double up = attempt.first_step - attempt.load - step_seconds_;
        (fresh ? start_ : relaunch_).add(up);
        started += fresh ? std::max(0.0, up) : 0;
        if (is_fault(attempt)) {
          detect_[static_cast<std::size_t>(kind_of(attempt.cause))].add(attempt.detect);
        }
        if (attempt.from_step > 0) {
          (fresh ? load_disk_ : load_memory_).add(attempt.load);
        }
      }
      if (!fresh) {
        exclude_.add(attempt.exclude);
      }
    }
    // What passes until the ranks are launched: agents and health checks.
    before_launch_ = std::max(0.0, seconds(account_, TimeCause::start) - started) /
                     static_cast<double>(std::max<std::int64_t>(1, account_.launches));
  }

  JobModel model() const {
    JobModel model;
    model.nodes = 1;
    for (const AttemptAccount& attempt : account_.attempts) {
      model.nodes = std::max<std::int64_t>(model.nodes, std::ssize(attempt.nodes));
    }
    model.step_seconds = std::max(1e-3, step_seconds_);
    model.rates = rates(model.nodes);
    JobModel::Times& times = model.times;
    for (std::size_t kind = 0; kind < kJobFaultKinds; ++kind) {
      times.detect[kind] = detect_[kind].value_or(times.detect[kind]);
    }
    times.start = start_.count() > 0 ? start_.value_or(0) + before_launch_ : times.start;
    times.finish = finish_.value_or(times.finish);
    times.relaunch = relaunch_.value_or(times.relaunch);
    times.exclude = exclude_.value_or(times.exclude);
    times.load_disk = load_disk_.value_or(load_memory_.value_or(times.load_disk));
    times.load_memory = load_memory_.value_or(load_disk_.value_or(times.load_memory));
    // The journal does not say how long saves take after their stall.
    model.checkpoint = settings_;
    model.checkpoint.stall = stall_;
    return model;
  }

  JobModel::Rates rates(std::int64_t nodes) const {
    JobModel::Rates rates;
    rates.source = "journal";
    const double days =
        std::max(1.0, account_.wall - seconds(account_, TimeCause::idle)) / kSecondsOfDay;
    const double unit = 1000 / (days * static_cast<double>(nodes));
    for (std::size_t i = 0; i < account_.attempts.size(); ++i) {
      const JobFaultKind kind = kind_of(account_.attempts[i].cause);
      if (!is_fault(account_.attempts[i])) {
        continue;
      }
      rates.process += kind == JobFaultKind::process ? unit : 0;
      rates.hang += kind == JobFaultKind::hang ? unit : 0;
      rates.node += kind == JobFaultKind::node ? unit : 0;
      rates.site += kind == JobFaultKind::site ? 365 / days : 0;
    }
    return rates;
  }

  // Adds the fault that ended the attempt. The end of the last one is that of the simulation.
  void add_fault(std::size_t i, JobFaults& faults) const {
    const AttemptAccount& attempt = account_.attempts[i];
    if (i + 1 == account_.attempts.size()) {
      return;
    }
    JobFault fault;
    fault.kind = kind_of(attempt.cause);
    fault.node = kAnyNode;
    fault.at = std::max(0.0, attempt.seconds - attempt.detect);
    if (is_fresh(i)) {
      fault.at += before_launch_;
    }
    if (fault.kind == JobFaultKind::stop) {
      fault.at = std::max(0.0, fault.at - finish_.value_or(0) - stall_);
    }
    if (attempt.to_step > attempt.from_step && attempt.from_step >= 0) {
      fault.after_step = static_cast<double>(attempt.to_step) + kWithinAStep;
    }
    if (fault.kind == JobFaultKind::site || fault.kind == JobFaultKind::stop) {
      fault.pause = pause_;
    }
    faults.faults.push_back(fault);
  }

  const Account& account_;
  const JobModel::Checkpoint& settings_;
  double step_seconds_ = 0, stall_ = 0, before_launch_ = 0;
  double good_ends_ = 0;
  double pause_ = pause_between_launches();
  Mean start_, finish_, relaunch_, exclude_, load_disk_, load_memory_;
  std::array<Mean, kJobFaultKinds> detect_;

  double pause_between_launches() const {
    return account_.launches > 1
               ? seconds(account_, TimeCause::idle) / static_cast<double>(account_.launches - 1)
               : 0;
  }
};

}  // namespace

JobModel::Checkpoint checkpoint_settings(std::string_view yaml, const std::string& name) {
  JobModel::Checkpoint settings;
  settings.every = {0, ""};
  settings.memory_every = {0, ""};
  const auto set = [&](IntegerOrWord& value, const ConfigEntry& entry) {
    const std::string& text = entry.value.items.front();
    char* end = nullptr;
    const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
    if (text != "auto" && (text.empty() || *end != '\0' || number < 0)) {
      throw ConfigError(fmt::format("{}:{}: {} is '{}', but it must be a number of steps or auto",
                                    name, entry.line, entry.key, text));
    }
    value = text == "auto" ? IntegerOrWord{0, "auto"} : IntegerOrWord{number, ""};
  };
  for (const ConfigEntry& entry : parse_config(yaml, name)) {
    if (entry.value.kind != ConfigValue::Kind::scalar) {
      continue;
    }
    if (entry.key == "checkpoint.every") {
      set(settings.every, entry);
    } else if (entry.key == "checkpoint.memory_every") {
      set(settings.memory_every, entry);
    } else if (entry.key == "checkpoint.partner") {
      settings.partner = entry.value.items.front() == "true";
    }
  }
  return settings;
}

RunJournal run_journal(const Account& account, const JobModel::Checkpoint& settings) {
  return JournalReader(account, settings).read();
}

}  // namespace trireme
