#include "src/train/checkpointing.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/ranges.h>
#include <linux/magic.h>
#include <nlohmann/json.hpp>
#include <sys/vfs.h>

#include "io/checkpoint/fingerprint.h"
#include "mpi/agreement.h"
#include "src/base/median.h"
#include "src/base/units.h"
#include "src/train/run/fingerprint.h"

namespace trireme {
namespace {

// A guess for a job on some dozens of nodes; sites know better (checkpoint.mtbf).
constexpr double kDefaultMtbfHours = 24;
constexpr std::size_t kStepTimes = 33;

DiskOptions disk_options(const RunConfig& config) {
  DiskOptions options;
  options.folder = config.checkpoint_dir();
  options.force = config.checkpoint.force_lock;
  options.retention = {config.checkpoint.keep, config.checkpoint.keep_every,
                       config.divergence.goes_back() ? config.checkpoint.every.integer : 0};
  return options;
}

bool is_tmpfs(const std::filesystem::path& folder) {
  struct statfs status {};
  return ::statfs(folder.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const Parts& parts)
    : parts_(parts),
      disk_(parts.world, disk_options(parts.config)),
      // A rank whose disk hangs reports it before the others have waited for that rank too long.
      disk_writer_(parts.world, disk_,
                   CheckpointWriter::Seconds(0.8 * parts.config.deadline.checkpoint)),
      nodes_(map_nodes(parts.world, parts.node)),
      run_(run_on_root(
          parts.world,
          [&] {
            return std::filesystem::weakly_canonical(parts.config.checkpoint_dir()).string();
          })),
      disk_schedule_(parts.config.checkpoint.every),
      memory_schedule_(parts.config.checkpoint.memory_every) {}

ResumeOptions TrainingCheckpoints::resume_options() {
  const CheckpointConfig& config = parts_.config.checkpoint;
  ResumeOptions options;
  options.node = parts_.node;
  options.nodes = &nodes_;
  options.identity = {run_, disk_.generation()};
  options.accept = [this](const Manifest& manifest) { accept(manifest); };
  options.nothing_whole = [this](const std::vector<std::string>& skipped) {
    if (parts_.world.rank() == 0) {
      parts_.log.warning(
          fmt::format("no checkpoint is complete in the nodes' memory, and there is none on disk: "
                      "the run starts from the beginning\n  {}",
                      fmt::join(skipped, "\n  ")));
    }
  };
  if (config.resume.is("never")) {
    options.accept = [folder = parts_.config.checkpoint_dir()](const Manifest& manifest) {
      throw ConfigError(fmt::format(
          "checkpoint.resume is never, but {} holds step {}: choose another checkpoint.dir, or "
          "remove the old checkpoints",
          folder.string(), manifest.meta.step));
    };
  } else if (!config.resume.is("auto")) {
    options.step = config.resume.integer;
  }
  return options;
}

std::optional<TrainingCounters> TrainingCheckpoints::resume(std::optional<std::int64_t> only) {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : parts_.engine.chunks()) {
    add_blocks(chunk->parameters, chunk->state.pieces_to_load(), blocks);
  }
  ResumeOptions options = resume_options();
  if (only) {
    options.step = only;
    options.accept = [this](const Manifest& manifest) { accept(manifest); };
  }
  const std::optional<Resumed> resumed =
      trireme::resume(parts_.world, parts_.config.checkpoint_dir(), blocks, options);
  if (!resumed) {
    return std::nullopt;
  }
  parts_.engine.masters_changed();
  const std::int64_t step = resumed->manifest.meta.step;
  if (!resumed->folder.empty()) {
    durable_step_ = disk_requested_ = step;
  }
  if (resumed->from_memory) {
    memory_requested_ = step;
    resumed_ = MemoryStepName{step, resumed->manifest.generation};
  }
  disk_schedule_.start(step);
  memory_schedule_.start(step);
  tell_resumed(*resumed);
  try {
    const TrainingCounters counters = counters_of(resumed->manifest.meta);
    check_samples(counters, resumed->manifest.meta);
    warn_of_other_samples(resumed->manifest.meta);
    return counters;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}; move it away, or choose another checkpoint.dir",
                                resumed->source(), error.what()));
  }
}

std::vector<TensorBlock> TrainingCheckpoints::blocks_to_save() const {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : parts_.engine.chunks()) {
    add_blocks(chunk->parameters, chunk->state.pieces_to_save(), blocks);
  }
  return blocks;
}

CheckpointMeta TrainingCheckpoints::meta_of(const TrainingCounters& counters) const {
  CheckpointMeta meta;
  meta.step = counters.step;
  meta.samples = parts_.config.batches().before(counters.batches());
  meta.config = parts_.fingerprints.config;
  meta.numerics = parts_.fingerprints.numerics;
  meta.extra = parts_.fingerprints.extra;
  put_counters(counters, *meta.extra);
  return meta;
}

void TrainingCheckpoints::reserve() {
  const CheckpointConfig& config = parts_.config.checkpoint;
  if (config.uses_memory() && open_memory()) {
    const std::string lack = gather_faults(parts_.world, memory_->reserve(blocks_to_save()));
    if (!lack.empty() && parts_.world.rank() == 0) {
      parts_.log.warning(
          fmt::format("{}: each save in memory will try again; make room there, or set "
                      "checkpoint.memory_every to 0",
                      lack));
    }
  } else if (CheckpointConfig::is_on(config.every)) {
    disk_.reserve(blocks_to_save());
  }
}

bool TrainingCheckpoints::open_memory() {
  MemoryOptions options;
  options.node = parts_.node;
  options.partner = parts_.config.checkpoint.partner;
  options.generation = disk_.generation();
  options.run = run_;
  memory_ = std::make_unique<MemoryTarget>(parts_.world, nodes_, std::move(options));
  const std::string fault = memory_->open(resumed_);
  if (fault.empty()) {
    memory_writer_ = std::make_unique<CheckpointWriter>(parts_.world, *memory_);
    return true;
  }
  memory_.reset();
  if (parts_.world.rank() == 0) {
    parts_.log.warning(fmt::format("checkpoints go to disk only: {}", fault));
  }
  return false;
}

bool TrainingCheckpoints::disk_due(std::int64_t step) const {
  return step == parts_.config.train.steps || disk_schedule_.due(step);
}

bool TrainingCheckpoints::save_due(std::int64_t step) const {
  return disk_due(step) || (memory_ != nullptr && memory_schedule_.due(step));
}

void TrainingCheckpoints::save_if_due(const TrainingCounters& counters, bool anyway) {
  const std::int64_t step = counters.step;
  const bool on_disk = (anyway || disk_due(step)) && step != disk_requested_;
  const bool in_memory =
      memory_ != nullptr && (on_disk || memory_schedule_.due(step)) && step != memory_requested_;
  if (on_disk || in_memory) {
    const Stopwatch stall;
    const CheckpointMeta meta = meta_of(counters);
    if (in_memory) {
      save_in_memory(meta);
    }
    if (on_disk) {
      save_on_disk(meta);
      disk_stall_ = stall.seconds();
    }
    if (!parts_.config.checkpoint.async) {
      (void)finish(step);
    }
  }
  since_save_ = Stopwatch();
}

void TrainingCheckpoints::save_again(const TrainingCounters& counters) {
  memory_requested_ = -1;  // what memory holds of the step has the old counters
  save_on_disk(meta_of(counters));
  (void)finish(counters.step);
}

void TrainingCheckpoints::save_in_memory(const CheckpointMeta& meta) {
  if (!disk_writer_.in_flight()) {
    memory_->unpin();
  }
  memory_requested_ = meta.step;
  memory_schedule_.saved(meta.step);
  note_memory(memory_writer_->save(meta, blocks_to_save()));
}

// From the copy in memory, where this rank has one of this step.
void TrainingCheckpoints::save_on_disk(const CheckpointMeta& meta) {
  disk_requested_ = meta.step;
  disk_schedule_.saved(meta.step);
  const bool is_in_memory = memory_ != nullptr && memory_requested_ == meta.step;
  std::optional<Snapshot> snapshot = is_in_memory ? memory_->snapshot() : std::nullopt;
  note(snapshot ? disk_writer_.save(meta, std::move(*snapshot))
                : disk_writer_.save(meta, blocks_to_save()));
  if (is_in_memory) {
    memory_->unpin();
    memory_->pin_latest();
  }
}

void TrainingCheckpoints::poll() {
  const double step_time = since_save_.seconds();
  if (step_times_.size() < kStepTimes) {
    step_times_.push_back(step_time);
  } else {
    step_times_[next_step_time_++ % kStepTimes] = step_time;
  }
  if (memory_ != nullptr) {
    note_memory(memory_writer_->poll());
  }
  note(disk_writer_.poll());
  since_save_ = Stopwatch();
}

bool TrainingCheckpoints::finish(std::int64_t step) {
  if (memory_ != nullptr) {
    note_memory(memory_writer_->finish());
  }
  note(disk_writer_.finish());
  return durable_step_ == step;
}

bool TrainingCheckpoints::quiet_within(std::chrono::duration<double> limit) {
  const bool is_written = disk_writer_.quiet_within(limit);
  return disk_.quiet_within(limit) && is_written;
}

SnapshotMemory TrainingCheckpoints::snapshots() const {
  const std::int64_t in_memory = memory_ == nullptr ? 0 : memory_->bytes();
  return {disk_.snapshot_bytes() + in_memory, is_tmpfs(parts_.node.folder) ? in_memory : 0};
}

double TrainingCheckpoints::step_seconds() const { return median(step_times_); }

// Of `auto`: the figures are those of the slowest rank, for all.
void TrainingCheckpoints::learn(SaveSchedule& schedule, const char* key, double cost,
                                double least) {
  if (!schedule.is_auto()) {
    return;
  }
  const double given = parts_.config.checkpoint.mtbf;
  const double seen = parts_.mtbf_hours > 0 ? parts_.mtbf_hours : kDefaultMtbfHours;
  std::array<double, 4> figures = {cost, least, step_seconds(), given > 0 ? given : seen};
  parts_.world.all_reduce({figures.data(), figures.size(), DType::f64, {}}, ReduceOp::max).wait();
  const auto told = schedule.learn({figures[0], figures[1], figures[2], 3600 * figures[3]});
  if (told && parts_.world.rank() == 0) {
    parts_.log.info(fmt::format("{}: {}", key, *told));
    parts_.log.event("save_interval", {{"key", key},
                                       {"steps", schedule.interval()},
                                       {"cost_seconds", figures[0]},
                                       {"least_seconds", figures[1]},
                                       {"step_seconds", figures[2]},
                                       {"mtbf_hours", figures[3]}});
  }
}

void TrainingCheckpoints::note(const std::optional<SaveOutcome>& outcome) {
  if (!outcome) {
    return;
  }
  if (outcome->durable) {
    durable_step_ = outcome->step;
    longest_save_seconds_ = std::max(longest_save_seconds_, outcome->seconds);
  }
  if (outcome->fenced) {
    throw PolicyError(fmt::format(
        "step {} was not saved and this run ends, because it no longer owns its checkpoint "
        "folder: {}",
        outcome->step, outcome->message));
  }
  if (parts_.world.rank() == 0 && !outcome->durable) {
    // After the last step nothing continues; the run's own error follows.
    const bool last = outcome->step >= parts_.config.train.steps;
    parts_.log.error(fmt::format("step {} could not be saved{}: {}", outcome->step,
                                 last ? "" : ", training continues", outcome->message));
  }
  if (!outcome->durable) {
    return;
  }
  if (parts_.world.rank() == 0) {
    parts_.log.event("checkpoint", {{"step", outcome->step},
                                    {"bytes", outcome->bytes},
                                    {"seconds", outcome->seconds},
                                    {"stall_ms", 1e3 * disk_stall_},
                                    {"waits", disk_writer_.stats().waits}});
    parts_.log.info(fmt::format("saved step {}: {} in {}{}{}", outcome->step,
                                format_bytes(outcome->bytes), format_seconds(outcome->seconds),
                                outcome->message.empty() ? "" : "; ", outcome->message));
  }
  // With copies in memory the stall of a save on disk is next to nothing: what counts then is the
  // disk, which others want, too.
  const double cost = memory_ == nullptr ? disk_stall_ : disk_writer_.stats().last_write_seconds;
  learn(disk_schedule_, "checkpoint.every", cost, outcome->seconds);
}

void TrainingCheckpoints::note_memory(const std::optional<SaveOutcome>& outcome) {
  if (!outcome) {
    return;
  }
  const double stall = memory_writer_->stats().last_stall_seconds;
  if (!outcome->message.empty() && parts_.world.rank() == 0) {
    parts_.log.warning(fmt::format("step {} was {} in memory, training continues: {}",
                                   outcome->step, outcome->durable ? "saved" : "not saved",
                                   outcome->message));
  }
  if (!outcome->durable) {
    return;
  }
  if (parts_.world.rank() == 0) {
    parts_.log.event("memory_checkpoint", {{"step", outcome->step},
                                           {"bytes", outcome->bytes},
                                           {"seconds", outcome->seconds},
                                           {"stall_ms", 1e3 * stall}});
  }
  learn(memory_schedule_, "checkpoint.memory_every", stall, outcome->seconds);
}

}  // namespace trireme
