#include "src/plan/simulate/job_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "src/base/error.h"
#include "src/base/save_interval.h"
#include "src/base/units.h"
#include "src/plan/simulate/published_rates.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, kJobFaultKinds> kFaultNames = {
    "process", "hang", "node", "group", "site", "straggler", "stop"};
constexpr std::int64_t kVersion = 1;
constexpr double kMostFaults = 2e6;  // expected in one draw: a 30-day month has 2.6 million seconds
constexpr double kMostSaves = 2e7;   // in one draw
constexpr double kMostRate = 1e6;    // per 1000 days of a node: one every 86 s
constexpr double kMostSeconds = 1e7;  // 116 days
constexpr double kDay = 86400;
constexpr std::int64_t kLongestInterval = std::int64_t{1} << 40;

void bind_size(ConfigBinder& b, JobModel& c) {
  std::int64_t version = kVersion;
  b.integer("version", version, "version of this file's format").at_least(1);
  if (version > kVersion) {
    b.refuse("version", fmt::format("the file has version {} of the format, but this program "
                                    "reads version {}: use a newer program",
                                    version, kVersion));
  }
  b.integer("nodes", c.nodes, "nodes that compute").at_least(1).at_most(1 << 20);
  b.integer("spares", c.spares, "nodes in reserve").at_least(0).at_most(1 << 20);
  b.integer("min_nodes", c.min_nodes, "continue with as few nodes; 0: all").at_least(0);
  b.integer("group_nodes", c.group_nodes, "nodes of a failure group").at_least(1);
  b.real("days", c.days, "time to simulate").above(0).at_most(3650);
  b.real("steps", c.steps, "the job ends after so many steps; 0: only after `days`").at_least(0);
  b.real("step_seconds", c.step_seconds, "time of a step").at_least(1e-3).at_most(kMostSeconds);
}

void bind_rates(ConfigBinder& b, JobModel::Rates& c) {
  std::vector<std::string> names = published_rate_names();
  if (c.source == "journal") {
    names.emplace_back("journal");
  }
  b.text("rates.source", c.source, "published rates, the default of process, hang and node")
      .one_of(names);
  if (c.source != "journal" && std::find(names.begin(), names.end(), c.source) != names.end()) {
    const PublishedRates& published = published_rates_of(c.source);
    c.process = published.process;
    c.hang = published.hang;
    c.node = published.node;
  }
  const auto rate = [&](const char* key, double& value, const char* doc) {
    b.real(key, value, doc).at_least(0).at_most(kMostRate);
  };
  rate("rates.process", c.process, "dead ranks per 1000 days of a node");
  rate("rates.hang", c.hang, "hangs per 1000 days of a node");
  rate("rates.node", c.node, "lost nodes per 1000 days of a node");
  rate("rates.group", c.group, "lost failure groups per 1000 days of one");
  rate("rates.straggler", c.straggler, "nodes that become slow, per 1000 days of a node");
  rate("rates.site", c.site, "losses of the whole machine per year");
  b.real("rates.lemon_share", c.lemon_share, "share of the nodes that fails more often")
      .at_least(0)
      .at_most(1);
  b.real("rates.lemon_factor", c.lemon_factor, "how many times as often").at_least(1).at_most(1e4);
}

void bind_times(ConfigBinder& b, JobModel::Times& c) {
  const auto seconds = [&](const char* key, double& value, const char* doc) {
    b.real(key, value, doc).at_least(0).at_most(kMostSeconds);
  };
  seconds("times.start", c.start, "s from the start of the job until its ranks load");
  seconds("times.finish", c.finish, "s until a job has ended after its last save");
  for (const JobFaultKind kind : {JobFaultKind::process, JobFaultKind::hang, JobFaultKind::node,
                                  JobFaultKind::group, JobFaultKind::site}) {
    b.real(fmt::format("times.detect_{}", name_of(kind)), c.detect[static_cast<std::size_t>(kind)],
           "s until such a fault is known")
        .at_least(0)
        .at_most(kMostSeconds);
  }
  seconds("times.exclude", c.exclude, "s to end the old ranks and choose nodes");
  seconds("times.relaunch", c.relaunch, "s to start the ranks again, until they load");
  seconds("times.load_memory", c.load_memory, "s to load a checkpoint from memory");
  seconds("times.load_disk", c.load_disk, "s to load a checkpoint from disk");
  b.real("times.repair_hours", c.repair_hours, "until a lost node is a spare again")
      .at_least(0)
      .at_most(1e6);
  b.real("times.site_hours", c.site_hours, "duration of a loss of the machine")
      .at_least(0)
      .at_most(1e6);
  b.real("times.spread", c.spread, "standard deviation of the logarithm of these times")
      .at_least(0)
      .at_most(3);
}

void bind_checkpoint(ConfigBinder& b, JobModel::Checkpoint& c) {
  b.integer_or_word("checkpoint.every", c.every, {"auto"}, "steps between saves on disk; 0: never")
      .at_least(0);
  b.integer_or_word("checkpoint.memory_every", c.memory_every, {"auto"},
                    "steps between saves in memory; 0: never")
      .at_least(0);
  b.boolean("checkpoint.partner", c.partner, "copy saves in memory to another node");
  b.real("checkpoint.stall", c.stall, "s for which a save stops training")
      .at_least(0)
      .at_most(kMostSeconds);
  b.real("checkpoint.memory_seconds", c.memory_seconds, "s until the other node has its copy")
      .at_least(0)
      .at_most(kMostSeconds);
  b.real("checkpoint.disk_seconds", c.disk_seconds, "s until a save is durable on disk")
      .at_least(0)
      .at_most(kMostSeconds);
}

void bind_pauses(ConfigBinder& b, JobModel& c) {
  b.real("straggler.slowdown", c.straggler.slowdown, "time of a step with a slow node")
      .at_least(1)
      .at_most(1000);
  b.real("straggler.hours", c.straggler.hours, "until the node recovers by itself")
      .at_least(0)
      .at_most(1e6);
  b.real("straggler.notice_minutes", c.straggler.notice_minutes, "until it is noticed")
      .at_least(0)
      .at_most(1e6);
  b.boolean("straggler.replace", c.straggler.replace, "then relaunch with a spare instead");
  b.real("maintenance.every_days", c.maintenance.every_days, "days between windows; 0: none")
      .at_least(0);
  b.real("maintenance.hours", c.maintenance.hours, "length of a window").at_least(0).at_most(1e6);
  b.real("queue.limit_hours", c.queue.limit_hours, "time limit of a job; 0: none").at_least(0);
  b.real("queue.wait_hours", c.queue.wait_hours, "time until the next job starts")
      .at_least(0)
      .at_most(1e6);
}

// Expresses an interval of seconds in steps, so that it is not shorter than `least` seconds.
std::int64_t in_steps(double seconds, double least, double step_seconds) {
  const double steps =
      std::max({1.0, std::round(seconds / step_seconds), std::ceil(least / step_seconds)});
  return steps < static_cast<double>(kLongestInterval) ? static_cast<std::int64_t>(steps)
                                                       : kLongestInterval;
}

// These keys are not those of a run, which the message for unknown keys means.
void finish(const ConfigBinder& b) {
  try {
    b.finish();
  } catch (const ConfigError& error) {
    constexpr std::string_view kKeysOfRuns = "`trireme config show` lists all keys";
    std::string message = error.what();
    for (std::size_t at = 0; (at = message.find(kKeysOfRuns)) != std::string::npos;) {
      message.replace(at, kKeysOfRuns.size(), "docs/planner-simulate.md lists all keys");
    }
    throw ConfigError(message);
  }
}

}  // namespace

std::string_view name_of(JobFaultKind kind) {
  return kFaultNames.at(static_cast<std::size_t>(kind));
}

double JobModel::mean_seconds_between_stops() const {
  const double groups = std::ceil(static_cast<double>(nodes) / static_cast<double>(group_nodes));
  const double per_day =
      (rates.process + rates.hang + rates.node) / 1000 * static_cast<double>(nodes) +
      rates.group / 1000 * groups + rates.site / 365;
  return per_day > 0 ? kDay / per_day : std::numeric_limits<double>::infinity();
}

std::int64_t JobModel::memory_interval() const {
  if (!checkpoint.memory_every.is("auto")) {
    return checkpoint.memory_every.integer;
  }
  const double between = mean_seconds_between_stops();
  const double best = std::isinf(between) ? between : best_interval(checkpoint.stall, between);
  return in_steps(best, checkpoint.memory_seconds, step_seconds);
}

std::int64_t JobModel::disk_interval() const {
  if (!checkpoint.every.is("auto")) {
    return checkpoint.every.integer;
  }
  const double between = mean_seconds_between_stops();
  const double best = std::isinf(between) ? between : best_interval(disk_save_cost(), between);
  return in_steps(best, checkpoint.disk_seconds, step_seconds);
}

double JobModel::disk_save_cost() const {
  return memory_interval() > 0 ? checkpoint.disk_seconds : checkpoint.stall;
}

JobModel load_job_model(const std::filesystem::path& file,
                        const std::vector<std::string>& arguments, const JobModel& defaults) {
  JobModel model = defaults;
  ConfigBinder b;
  if (!file.empty()) {
    b.add_file(file);
  }
  b.add_arguments(arguments);
  bind_size(b, model);
  bind_rates(b, model.rates);
  bind_times(b, model.times);
  bind_checkpoint(b, model.checkpoint);
  bind_pauses(b, model);
  if (model.min_nodes > model.nodes) {
    b.refuse("min_nodes", fmt::format("min_nodes {} is more than the {} nodes of the job",
                                      model.min_nodes, model.nodes));
  }
  finish(b);
  check_job_model(model);
  return model;
}

std::vector<std::string> save_warnings(const JobModel& model) {
  std::vector<std::string> warnings;
  const auto compare = [&](std::string_view what, std::int64_t steps, double takes,
                           std::string_view consequence) {
    const double seconds = static_cast<double>(steps) * model.step_seconds;
    if (steps > 0 && seconds < takes) {
      warnings.push_back(fmt::format("saves {} every {}, but one takes {}: {}", what,
                                     format_seconds(seconds), format_seconds(takes), consequence));
    }
  };
  compare("on disk", model.disk_interval(), model.checkpoint.disk_seconds,
          "training waits for each to be durable before the next (checkpoint.every, "
          "checkpoint.disk_seconds)");
  if (model.checkpoint.partner) {
    compare("in memory", model.memory_interval(), model.checkpoint.memory_seconds,
            "a partner seldom has a new copy (checkpoint.memory_every, "
            "checkpoint.memory_seconds)");
  }
  return warnings;
}

void check_job_model(const JobModel& model) {
  const double nodes = static_cast<double>(model.nodes + model.spares);
  const JobModel::Rates& rates = model.rates;
  const double per_day =
      (rates.process + rates.hang + rates.node + rates.straggler) / 1000 * nodes +
      rates.group / 1000 * nodes / static_cast<double>(model.group_nodes) + rates.site / 365;
  if (!(per_day * model.days <= kMostFaults)) {
    throw ConfigError(fmt::format(
        "{} nodes with these rates have {:.3g} faults in {} days, one every {:.2g} s: no job would "
        "get on. Rates are per 1000 days of a node; at most {:.0g} faults can be simulated",
        model.nodes + model.spares, per_day * model.days, model.days, kDay / per_day, kMostFaults));
  }
  const double steps = model.days * kDay / model.step_seconds;
  for (const std::int64_t every : {model.memory_interval(), model.disk_interval()}) {
    if (every > 0 && !(steps / static_cast<double>(every) <= kMostSaves)) {
      throw ConfigError(
          fmt::format("{:.3g} steps in {:.4g} days with a save every {} are {:.3g} saves, but at "
                      "most {:.0g} can be simulated: save less often, or simulate fewer days",
                      steps, model.days, counted(every, "step"), steps / static_cast<double>(every),
                      kMostSaves));
    }
  }
}

}  // namespace trireme
