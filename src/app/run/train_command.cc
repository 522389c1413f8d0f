#include "src/app/run/train_command.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/run_lock.h"
#include "mpi/agreement.h"
#include "mpi/session/start_alarm.h"
#include "src/app/access/run_origin.h"
#include "src/app/access/run_text_keys.h"
#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/app/plan/layout_choice.h"
#include "src/app/run/early_end.h"
#include "src/app/run/finished_run.h"
#include "src/app/run/launch_variables.h"
#include "src/app/run/stop_message.h"
#include "src/base/fault.h"
#include "src/base/file.h"
#include "src/base/memory_lock.h"
#include "src/base/printable.h"
#include "src/base/stack_dump.h"
#include "src/base/syscall_filter.h"
#include "src/base/units.h"
#include "src/keys/log_keys.h"
#include "src/plan/cluster_file.h"
#include "src/train/ending/job_end.h"
#include "src/train/recovery/logged_replay.h"
#include "src/train/run/access_check.h"
#include "src/train/start/connect.h"
#include "src/train/start/run_keys.h"
#include "src/train/start/run_place.h"
#include "src/train/start/space_forecast.h"
#include "src/train/start/startup.h"
#include "src/train/start/transport_check.h"
#include "src/train/training.h"

namespace trireme {
namespace {

struct TrainOptions {
  std::string file;
  std::vector<std::string> arguments;
  std::int64_t replay = 0;  // the step up to which to replay; 0 to train
};

// An I/O error of the storage may pass, and a launch starts again after one. Other errors of the
// path do not pass, so they become ConfigError.
std::unique_ptr<ProgressPage> open_progress_page() {
  const auto named = [](const Error& error) {
    return fmt::format("TRIREME_NODE_DIR is '{}', which can't be used: {}",
                       printable(std::getenv("TRIREME_NODE_DIR")), error.what());
  };
  try {
    return progress_page_of_environment();
  } catch (const IoError& error) {
    throw IoError(named(error));
  } catch (const Error& error) {
    throw ConfigError(named(error));
  }
}

// Warns before the first save, which may be hours away.
void warn_of_space(const RunConfig& config, Communicator& world, Log& log) {
  if (world.rank() != 0) {
    return;
  }
  const std::string lack = measured_space(config).lack(config.checkpoint_dir().string());
  if (!lack.empty()) {
    log.warning(lack);
  }
}

// Logs the device of each rank in the rank's own log, and warns of simulated ones.
void log_devices(const World& ranks, Log& log) {
  const int rank = ranks.control->rank();
  const RankDevice& own = ranks.devices[static_cast<std::size_t>(rank)];
  log.event("device", to_json(own));
  if (rank == 0 && own.is_simulated) {
    log.warning(
        "this run computes on a simulated CUDA device: it tests the program, and its speed says "
        "nothing about any GPU");
  }
}

// Locks the run's folder before any rank writes to it, so that a folder in use stays unchanged.
std::optional<FileLock> take_directory(const RunDirectory& run, bool replays, Communicator& world) {
  std::optional<FileLock> lock;
  run_on_root(world, [&] {
    try {
      lock = run.take();
    } catch (const NotFound& error) {  // a part of the path is a file, or lies in /proc
      throw ConfigError(fmt::format("run.dir: {}: choose another path", error.what()));
    }
    if (!replays) {  // a replay may be there to examine the failure
      run.forget_exit_reason();
    }
    return std::string();
  });
  return lock;
}

// Runs one start of `trireme train`: from the command line to the outcome, on every rank.
class TrainStart {
 public:
  TrainStart(const TrainOptions& options, AppContext& context);
  void run();

 private:
  void watch_start(const std::string& files, std::chrono::duration<double> limit,
                   std::string_view key);
  LoadedConfig load_config();
  bool is_finished(const RunConfig& config, const RunDirectory& run);
  void begin_audit(const LoadedConfig& loaded);
  void log_start(const RunConfig& config, Log& log);
  void start_ranks(const LoadedConfig& loaded, const RunDirectory& run);
  void train(const LoadedConfig& loaded, const RunDirectory& run, TrainingHost& host);
  void note_stop(const RunDirectory& run, const TrainingOutcome& outcome, Log& log);
  void note_progress(ProgressPhase phase, std::int64_t step, double limit);
  void confine(const SecurityConfig& security, Log& log);
  void check_system_calls() const;  // throws PolicyError if this rank tried to start a program
  bool replays() const { return options_.replay != 0; }
  Communicator& world() { return context_.session().world(); }

  const TrainOptions& options_;
  AppContext& context_;
  std::vector<std::string> layout_notes_;  // of the chosen layout, for the log
  const StopFlag stop_;  // created first, so that signals during the start of MPI count as well
  JobEnd end_;
  RunOrigin origin_;                   // filled on rank 0
  TransportCheck::Audit audit_;        // empty unless this rank records events
  std::optional<StartAlarm> opening_;  // until the run's files are open
  std::optional<SyscallFilter> filter_;
};

TrainStart::TrainStart(const TrainOptions& options, AppContext& context)
    : options_(options), context_(context) {
  check_attempt_number();
  (void)LockOwner::this_process();  // refuses variables that would make the lock unreadable
  context.progress = open_progress_page();
  const auto limit = start_deadline(process_environment()("TRIREME_START_DEADLINE"));
  note_progress(ProgressPhase::start, 0, limit.count());
  end_ = find_job_end(process_environment());
  watch_start(options.file, limit, "TRIREME_START_DEADLINE");
}

void TrainStart::note_progress(ProgressPhase phase, std::int64_t step, double limit) {
  if (context_.progress != nullptr) {
    context_.progress->note(phase, step, limit);
  }
}

// Ends a single rank whose start hangs on a file system. There is no other rank whose deadline
// would end it, and a signal only asks for a save.
void TrainStart::watch_start(const std::string& files, std::chrono::duration<double> limit,
                             std::string_view key) {
  if (world().size() == 1) {
    opening_.emplace(limit, fmt::format("the start has not finished within {}: a file system hangs "
                                        "or is very slow ({}); {} waits longer",
                                        format_seconds(limit.count()), files, key));
  }
}

LoadedConfig TrainStart::load_config() {
  LoadedConfig loaded = load_with_layout(
      {.file = options_.file, .arguments = options_.arguments, .environment = environ},
      context_.session(), layout_notes_);
  const RunConfig& config = loaded.config;
  world().set_deadline(std::chrono::duration<double>(config.deadline.start));
  // The limit covers opening the run's files and loading a checkpoint.
  watch_start("that of run.dir, data.train, data.validation or checkpoint.dir",
              std::chrono::duration<double>(config.deadline.start + config.deadline.checkpoint),
              "comm.deadline.start");
  note_progress(ProgressPhase::start, 0, config.deadline.start);
  check_same_config(world(), loaded);
  return loaded;
}

// Returns whether an earlier start has finished the run. Rank 0 checks for all ranks. Throws
// ConfigError on all ranks if what it has finished is another run.
bool TrainStart::is_finished(const RunConfig& config, const RunDirectory& run) {
  const bool is_one = !replays() && world().rank() == 0 && trireme::is_finished(config);
  if (all_reduce_value(world(), std::int64_t{is_one}, ReduceOp::max) == 0) {
    return false;
  }
  run_on_root(world(), [&] {
    check_same_as_finished(config, run);
    return std::string();
  });
  note_progress(ProgressPhase::end, config.train.steps, config.deadline.start);
  if (world().rank() == 0) {
    run.forget_exit_reason();
    print_finished(config, run);
  }
  return true;
}

void TrainStart::run() {
  const LoadedConfig loaded = load_config();
  const RunDirectory run(loaded.config.run_dir);
  if (is_finished(loaded.config, run)) {
    return;
  }
  run_on_root(world(), [&] {
    check_folders(loaded.config);
    check_place_of_run(loaded.config);
    if (!loaded.config.encryption.logs) {
      check_files_are_plain(loaded.config.run_dir);
    }
    if (!loaded.config.plan_cluster.empty()) {
      (void)load_cluster(loaded.config.plan_cluster);
    }
    return std::string();
  });
  const std::optional<FileLock> lock = take_directory(run, replays(), world());
  context_.run = run;
  begin_audit(loaded);
  start_ranks(loaded, run);
}

// Records the start in the site's audit log. If that fails, no rank starts.
void TrainStart::begin_audit(const LoadedConfig& loaded) {
  run_on_root(world(), [&] {
    origin_ = origin_of(loaded, context_.arguments, context_.session().places());
    context_.audit.begin(loaded.config.audit, "train", start_details(loaded.config, origin_));
    return std::string();
  });
  if (context_.audit.is_active()) {
    audit_ = [this](std::string_view event, const nlohmann::ordered_json& details) {
      context_.audit.note(event, details);
    };
  }
}

// Logs what is trained and by which build. Throws ConfigError if the builds of the ranks differ.
void TrainStart::log_start(const RunConfig& config, Log& log) {
  if (world().rank() == 0 && !replays()) {
    announce_run(config, world().size(), log);
    for (const std::string& warning : misspelt_switches(environ)) {
      log.warning(warning);
    }
    for (const std::string& note : layout_notes_) {
      log.info(note);
    }
  }
  nlohmann::json build = version_json();
  check_same_build(world(), build, config.reproducibility, log);
  build.update(nlohmann::json(build.at("built_with")));
  build.erase("built_with");
  log.event("build", build);
}

void TrainStart::start_ranks(const LoadedConfig& loaded, const RunDirectory& run) {
  const RunConfig& config = loaded.config;
  MpiSession& session = context_.session();
  Log log({.rank = world().rank(),
           .ranks = world().size(),
           .host = session.place().host,
           .folder = config.run_dir / "logs",
           .json = config.log_format == "json",
           .rotate_bytes = config.log_bytes,
           .waits_for_keys = config.encryption.logs});
  // The supervisor requests stacks before it ends a rank that makes no progress.
  const StackDump stacks(config.run_dir / "logs" / fmt::format("rank-{:05}.stack", world().rank()));
  log_start(config, log);
  TransportCheck transport(config.security, world(), log, audit_);
  transport.before_connecting();
  const World ranks = connect(config, session, log);
  transport.after_connecting(*ranks.links);
  note_devices(context_, ranks.devices);
  log_devices(ranks, log);
  TrainingHost host{.world = *ranks.control,
                    .data = *ranks.data,
                    .device = ranks.device,
                    .devices = &ranks.devices,
                    .places = session.places(),
                    .recorder = session.recorder(),
                    .log = log,
                    .stop = stop_,
                    .status = context_.status};
  host.limit = time_limit(config, end_, log);
  if (!replays()) {
    warn_of_grace(log);
  }
  host.node = NodeMemory::from_environment();
  host.mtbf_hours = seen_mtbf_hours();
  host.origin = write_bill_of_materials(config, *ranks.control, origin_);
  host.audit = audit_;
  host.check_security = [&](std::int64_t step, bool saves) {
    transport.at_step(step, saves);
    check_system_calls();
  };
  check_same_policy(context_.access(), *ranks.control);
  host.access = &context_.access();
  const std::unique_ptr<StepKeys> keys = keys_of(config.encryption, *ranks.control);
  host.keys = keys.get();
  RunTextKeys text(config, keys.get(), *ranks.control, log, audit_);
  host.text = text.how();
  host.bind_label = [&](const auto& label) { text.bind_label(label, *ranks.control); };
  origin_.logs = text.start();
  host.progress = context_.progress.get();
  host.links = ranks.links.get();
  confine(config.security, log);
  if (replays()) {
    opening_.reset();
    replay_logged(config, host, options_.replay);
  } else {
    train(loaded, run, host);
  }
  text.close(*ranks.control, log);
}

// MPI, the drivers of devices and tokens have started their programs, and no data was read yet.
void TrainStart::confine(const SecurityConfig& security, Log& log) {
  if (security.lock_memory) {
    lock_all_memory();
  }
  if (security.seccomp) {
    filter_.emplace();
    log.info("security.seccomp: this rank can start no programs from now on");
  }
}

void TrainStart::check_system_calls() const {
  if (filter_) {
    filter_->check();
  }
}

void TrainStart::train(const LoadedConfig& loaded, const RunDirectory& run, TrainingHost& host) {
  const RunConfig& config = loaded.config;
  warn_of_space(config, world(), host.log);
  Training training(config, host);
  opening_.reset();
  if (world().rank() == 0) {
    // Written only now, so that a refused start leaves the files of an earlier one unchanged.
    write_file_durably(run.config(), loaded.binder.to_yaml());
    run.clear_done();
  }
  const TrainingOutcome outcome = training.run();
  check_system_calls();
  note_progress(ProgressPhase::end, outcome.step, config.deadline.start);
  fault("finish.finalize");
  if (!outcome.finished) {
    note_stop(run, outcome, host.log);
  }
}

void TrainStart::note_stop(const RunDirectory& run, const TrainingOutcome& outcome, Log& log) {
  context_.exit_code = static_cast<int>(ExitCode::requeue);
  if (world().rank() == 0) {
    const std::string message = stop_message(outcome);
    log.info(message);
    const bool job_ends = outcome.stop_signal == kTimeLimitSignal;
    run.write_exit_reason({context_.exit_code, job_ends ? "time_limit" : "signal", message, 0,
                           context_.session().place().host, job_ends ? 0 : outcome.stop_signal,
                           outcome.step, "train"});
  }
}

}  // namespace

void add_train_command(CommandLine& app, AppContext& context) {
  CommandLine& command = app.add_command(
      "train", "Train a model; run it with trireme launch, mpirun or srun, or alone as one rank");
  const auto options = std::make_shared<TrainOptions>();
  command.add_option("CONFIG", options->file, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options->arguments,
                     "Configuration keys to override, as in train.steps=100");
  command
      .add_option("--replay", options->replay,
                  "Recompute the steps from the newest checkpoint before STEP up to STEP and "
                  "compare their bits with metrics.jsonl; saves nothing")
      .no_default()
      .type_name("STEP")
      .check(positive_number());
  command.footer(
      "Examples:\n"
      "  trireme launch --ranks-per-node 2 -- train configs/run/demo.yaml\n"
      "  mpirun -n 2 trireme train configs/run/demo.yaml train.steps=100\n"
      "  mpirun -n 2 trireme train configs/run/demo.yaml --replay 50\n"
      "The same command resumes an interrupted run from its newest valid checkpoint. On SIGTERM, "
      "SIGINT, SIGUSR1, SIGUSR2 or SIGXCPU (ulimit -St) the run finishes its step, saves a "
      "checkpoint and exits with 75. It ignores SIGHUP and so outlives its terminal, but mpirun "
      "ends its ranks on that signal.");
  command.callback([options, &context] { TrainStart(*options, context).run(); });
}

}  // namespace trireme
