#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/plan/plan_subcommands.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/plan/simulate/goodput_report.h"
#include "src/plan/simulate/save_times.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostJournalBytes = std::int64_t{4} << 30;

struct SimulateOptions {
  std::string file;
  std::vector<std::string> keys;
  std::int64_t nodes = 0;
  std::int64_t spares = 0;
  double days = 0;
  std::uint64_t seed = 1;
  int draws = 100;
  int threads = 1;
  std::string journal, svg;
  bool replay = false;
  bool no_measures = false;
  bool json = false;
};

// Reads from the log of rank 0 how long the saves of a run took.
SaveTimes read_save_times(const std::filesystem::path& run) {
  SaveTimes times;
  std::error_code gone;
  for (const auto& path : {older_log_file(run / "logs", 0), log_file(run / "logs", 0)}) {
    if (std::filesystem::exists(path, gone)) {
      times.add_log(read_file(path, kMostJournalBytes));
    }
  }
  return times;
}

// Reads how often the run saved.
JobModel::Checkpoint read_checkpoint_settings(const std::filesystem::path& run,
                                              const SaveTimes& times) {
  const std::filesystem::path config = run / "config.yaml";
  std::error_code gone;
  if (std::filesystem::exists(config, gone)) {
    return checkpoint_settings(read_file(config, kMaxConfigBytes), config.string());
  }
  fmt::print(
      stderr,
      "trireme: {} has no config.yaml: assuming that checkpoints were saved as often as {}\n",
      printable(run.string()), times.disk.steps > 0 ? "the log tells" : "'auto' would");
  return times.observed_settings();
}

// Reads the journal of a run, with its saves, from the run's folder. notes: receives sentences for
// people on where the figures of the saves come from.
RunJournal read_journal(const std::filesystem::path& run, std::vector<std::string>& notes) {
  const std::filesystem::path path = run / "journal.jsonl";
  std::error_code gone;
  if (!std::filesystem::exists(path, gone)) {
    throw NotFound(fmt::format(
        "--journal {}: the folder has no journal.jsonl, which 'trireme launch' writes into the "
        "folder of a run",
        run.string()));
  }
  DamagedLines damaged;
  const auto events = parse_journal(read_file(path, kMostJournalBytes), damaged);
  warn_of(damaged, path);
  const SaveTimes times = read_save_times(run);
  const JobModel::Checkpoint settings = read_checkpoint_settings(run, times);
  try {
    RunJournal journal = run_journal(account_of(events, standing_of(run)), settings);
    notes = use_save_times(times, journal.model.checkpoint);
    return journal;
  } catch (const DataError& error) {
    throw data_error_in(path.string(), error);
  }
}

void check_simulate_options(const SimulateOptions& options) {
  if (options.replay && options.journal.empty()) {
    throw ConfigError("--replay needs --journal RUN, the folder of the run to replay");
  }
  if (!options.svg.empty() && std::filesystem::path(options.svg).extension() != ".svg") {
    throw ConfigError(fmt::format("--svg {}: the name of a figure must end in .svg", options.svg));
  }
}

// Returns the keys that the options stand for, and those given. Throws ConfigError if both name
// one.
std::vector<std::string> job_keys(const SimulateOptions& options) {
  std::vector<std::string> keys;
  const auto add = [&](const char* name, bool is_given, const std::string& value) {
    if (!is_given) {
      return;
    }
    for (const std::string& key : options.keys) {
      if (key.starts_with(fmt::format("{}=", name))) {
        throw ConfigError(
            fmt::format("{} contradicts --{} {}: give one of them", key, name, value));
      }
    }
    keys.push_back(fmt::format("{}={}", name, value));
  };
  add("nodes", options.nodes > 0, fmt::format("{}", options.nodes));
  add("spares", options.spares >= 0, fmt::format("{}", options.spares));
  add("days", options.days > 0, fmt::format("{}", options.days));
  keys.insert(keys.end(), options.keys.begin(), options.keys.end());
  return keys;
}

void simulate(const SimulateOptions& options) {
  check_simulate_options(options);
  JobModel defaults;
  GoodputReport report;
  if (!options.journal.empty()) {
    const RunJournal journal = read_journal(options.journal, report.notes);
    defaults = journal.model;
    if (options.replay) {
      const SimulatedRun replayed = simulate_job(journal.replay, journal.faults);
      options.json ? print_json(to_json(journal, replayed))
                   : fmt::print("{}", to_text(journal, replayed));
      return;
    }
  }
  report.model = load_job_model(options.file, job_keys(options), defaults);
  report.seed = options.seed;
  const std::vector<SimulatedRun> runs =
      simulate_draws(report.model, options.seed, options.draws, options.threads);
  report.goodput = summarize(runs);
  if (!options.no_measures) {
    report.measures = compare_measures(report.model, runs, options.seed, options.threads);
  }
  if (!options.svg.empty()) {
    write_named_file(options.svg, to_svg(report));
  }
  options.json ? print_json(to_json(report)) : fmt::print("{}", to_text(report));
}

void add_job_options(CommandLine& command, SimulateOptions& options) {
  command.add_option("KEY=VALUE", options.keys,
                     "What differs from the defaults or the file (docs/planner-simulate.md)");
  command.add_option("--job", options.file, "A YAML file with the same keys").type_name("FILE");
  command.add_option("--nodes", options.nodes, "Nodes that compute (default: 2048)")
      .check(integer_within(1, 1 << 20));
  command.add_option("--spares", options.spares, "Nodes in reserve (default: 0)")
      .check(integer_within(0, 1 << 20));
  command.add_option("--days", options.days, "Time to simulate (default: 30)")
      .check(positive_number());
  command
      .add_option("--journal", options.journal,
                  "Take rates and times from the journal in this folder of a run")
      .type_name("RUN");
  command.add_flag("--replay", options.replay,
                   "Replay the faults of the journal and compare the goodput");
}

}  // namespace

void add_plan_simulate_command(CommandLine& plan) {
  CommandLine& command =
      plan.add_command("simulate", "Simulate the failures of a long job, and what helps");
  const auto options = std::make_shared<SimulateOptions>();
  options->spares = -1;
  add_job_options(command, *options);
  command.add_option("--seed", options->seed, "Determines the faults").check(any_seed());
  command.add_option("--draws", options->draws, "Number of simulations")
      .check(integer_within(1, 100'000));
  command.add_option("--threads", options->threads, "Number of threads").check(thread_count());
  command.add_option("--svg", options->svg, "Draw the distribution of goodput")
      .type_name("FILE")
      .written();
  command.add_flag("--no-measures", options->no_measures, "Leave out what would help");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme plan simulate --nodes 2048 --days 30 --spares 16 --seed 1\n"
      "  trireme plan simulate --nodes 512 rates.source=opt175b \\\n"
      "    checkpoint.memory_every=0\n"
      "  trireme plan simulate --journal runs/first --replay");
  command.callback([options] { simulate(*options); });
}

}  // namespace trireme
