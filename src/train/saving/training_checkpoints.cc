#include "src/train/saving/training_checkpoints.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/tmpfs.h"

namespace trireme {
namespace {

// Collective, so that all ranks throw alike if rank 0 cannot read what is to be signed.
std::unique_ptr<CheckpointProvenance> provenance_of(const TrainingCheckpoints::Parts& parts) {
  std::unique_ptr<CheckpointProvenance> provenance;
  if (parts.origin != nullptr) {
    run_on_root(parts.world, [&] {
      provenance = std::make_unique<CheckpointProvenance>(parts.config, *parts.origin, parts.train);
      return std::string();
    });
  }
  return provenance;
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const Parts& parts)
    : parts_(parts),
      label_(parts.access, parts.world, parts.config.checkpoint_dir(), kUnlabelled),
      report_(parts.log, parts.world.rank(), parts.config.train.steps),
      policy_(parts.config, parts.world, report_, parts.mtbf_hours),
      check_(parts.config, parts.fingerprints, report_),
      mirror_(parts.engine.context()),
      provenance_(provenance_of(parts)),
      disk_(parts.world, disk_options()),
      // If a rank's disk hangs, that rank throws Hang before the other ranks' deadline passes.
      disk_writer_(parts.world, disk_,
                   CheckpointWriter::Seconds(0.8 * parts.config.deadline.checkpoint)),
      nodes_(map_nodes(parts.world, parts.node)),
      run_(run_on_root(parts.world, [&] {
        return std::filesystem::weakly_canonical(parts.config.checkpoint_dir()).string();
      })) {
  label_.join(parts_.train);
  if (const std::string warning = disk_.warning(); !warning.empty()) {
    report_.warning(warning);
  }
}

DiskOptions TrainingCheckpoints::disk_options() {
  const RunConfig& config = parts_.config;
  DiskOptions options;
  options.folder = config.checkpoint_dir();
  options.force = config.checkpoint.force_lock;
  options.retention = {config.checkpoint.keep, config.checkpoint.keep_every,
                       config.divergence.goes_back() ? config.checkpoint.every.integer : 0};
  options.io.sha256 = parts_.origin != nullptr;
  options.deleted = [this](const StepFolder& step) { deleted_.add(step); };
  if (provenance_ != nullptr) {
    options.provenance = [this](const Manifest& manifest, std::string_view text) {
      return provenance_->bundle(manifest, text);
    };
  }
  return options;
}

std::vector<TensorBlock> TrainingCheckpoints::blocks_to_save() const {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : parts_.engine.chunks()) {
    add_blocks(chunk->parameters, chunk->state.pieces_to_save(), blocks);
  }
  return blocks;
}

// Starts the copy of what is saved. It goes on beside the next step's forward and backward; the
// update waits for it.
HostMirror::Copy TrainingCheckpoints::copy_to_host() {
  disk_writer_.complete_snapshot();
  if (memory_ != nullptr) {
    memory_->writer.complete_snapshot();
  }
  HostMirror::Copy copy = mirror_.start(blocks_to_save());
  parts_.engine.hold_update(copy.done);
  return copy;
}

CheckpointMeta TrainingCheckpoints::meta_of(const TrainingCounters& counters) const {
  const RunFingerprints& own = parts_.fingerprints;
  const std::int64_t samples = parts_.config.batches().before(counters.batches());
  CheckpointMeta meta{counters.step, samples, own.config, own.numerics, own.extra, label_.value()};
  put_counters(counters, *meta.extra);
  if (first_weights_) {
    (*meta.extra)[kFirstWeightsField] = **first_weights_;
  }
  return meta;
}

// On a device, the check of the weights that each save begins with takes its memory here, so that
// no save waits for the driver to allocate it.
void TrainingCheckpoints::reserve() {
  if (parts_.engine.context().device().kind == DeviceKind::cuda) {
    (void)fault_of_numbers(parts_.engine.context(), blocks_to_save(), FiniteCheck::weights);
  }
  const CheckpointConfig& config = parts_.config.checkpoint;
  if (config.uses_memory() && open_memory()) {
    const std::string lack =
        gather_faults(parts_.world, memory_->target.reserve(mirror_.fetch(blocks_to_save())));
    if (!lack.empty()) {
      report_.warning(
          fmt::format("{}: each save in memory will try again; make room there, or set "
                      "checkpoint.memory_every to 0",
                      lack));
    }
  } else if (CheckpointConfig::is_on(config.every)) {
    disk_.reserve(mirror_.fetch(blocks_to_save()));
  }
}

bool TrainingCheckpoints::open_memory() {
  MemoryOptions options;
  options.node = parts_.node;
  options.partner = parts_.config.checkpoint.partner;
  options.generation = disk_.generation();
  options.run = run_;
  options.encrypts = parts_.keys != nullptr;
  memory_ = std::make_unique<Memory>(parts_.world, nodes_, std::move(options));
  const std::string fault = memory_->target.open(resumed_);
  if (!fault.empty()) {
    memory_.reset();
    report_.warning(fmt::format("checkpoints go to disk only: {}", fault));
  }
  return memory_ != nullptr;
}

bool TrainingCheckpoints::save_due(std::int64_t step) const {
  return disk_due(step) || (memory_ != nullptr && policy_.memory_due(step));
}

void TrainingCheckpoints::save_if_due(const TrainingCounters& counters, bool anyway) {
  const std::int64_t step = counters.step;
  const bool on_disk = (anyway || disk_due(step)) && !policy_.disk_has(step);
  const bool in_memory =
      memory_ != nullptr && (on_disk || policy_.memory_due(step)) && !policy_.memory_has(step);
  if ((on_disk || in_memory) && step != refused_step_) {
    const Stopwatch stall;
    refused_ = gather_faults(
        parts_.world,
        fault_of_numbers(parts_.engine.context(), blocks_to_save(), FiniteCheck::weights));
    if (!refused_.empty()) {
      refused_step_ = step;
      report_.warning(fmt::format("step {} is not saved, because the weights have diverged: {}",
                                  step, refused_));
      since_save_ = Stopwatch();
      return;
    }
    if (!make_key(step)) {
      since_save_ = Stopwatch();
      return;
    }
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
  policy_.forget_memory();  // its copy in memory has the old counters
  if (!make_key(counters.step)) {
    return;
  }
  save_on_disk(meta_of(counters));
  (void)finish(counters.step);
}

// Makes the key of a save that begins. Returns whether it can begin: if what holds the wrapping
// keys refuses, such as a token that was removed, training goes on without this save.
bool TrainingCheckpoints::make_key(std::int64_t step) {
  if (parts_.keys == nullptr) {
    return true;
  }
  try {
    key_ = parts_.keys->next();
    no_key_.clear();
    return true;
  } catch (const PolicyError& error) {
    no_key_ = error.what();
    std::string text =
        fmt::format("step {} is not saved, because its key cannot be wrapped: {}", step, no_key_);
    if (text != no_key_warning_) {  // the end of a run tries the last step again
      report_.warning(text);
    }
    no_key_warning_ = std::move(text);
    return false;
  }
}

void TrainingCheckpoints::save_in_memory(const CheckpointMeta& meta) {
  if (!disk_writer_.in_flight()) {
    memory_->target.unpin();
  }
  policy_.memory_saves(meta.step);
  const HostMirror::Copy copy = copy_to_host();
  memory_key_ = key_;
  note_memory(memory_->writer.save(meta, copy.blocks, copy.ready, memory_key_));
}

// The provenance of the step states the energy until now.
void TrainingCheckpoints::note_energy(std::int64_t step) {
  if (parts_.origin == nullptr || !parts_.energy) {
    return;
  }
  const EnergyUsed energy = parts_.energy();
  if (provenance_ != nullptr) {
    provenance_->used(step, energy);
  }
}

// Writes from the copy in memory if this rank has one of this step.
void TrainingCheckpoints::save_on_disk(const CheckpointMeta& meta) {
  policy_.disk_saves(meta.step);
  note_energy(meta.step);
  const bool is_in_memory = memory_ != nullptr && policy_.memory_has(meta.step);
  const bool has_snapshot = is_in_memory && memory_->target.snapshot();
  // What was encrypted for memory earlier keeps its key, also on ranks without a snapshot: all
  // shards of a step have one. After a resume from memory, this start has no such key.
  const auto& key = is_in_memory && memory_key_ != nullptr ? memory_key_ : key_;
  if (has_snapshot) {
    note_disk(disk_writer_.save(meta, *memory_->target.snapshot(), key));
  } else {
    const HostMirror::Copy copy = copy_to_host();
    note_disk(disk_writer_.save(meta, copy.blocks, copy.ready, key));
  }
  if (is_in_memory) {
    memory_->target.unpin();
    memory_->target.pin_latest();
  }
}

void TrainingCheckpoints::poll() {
  policy_.step_took(since_save_.seconds());
  if (memory_ != nullptr) {
    note_memory(memory_->writer.poll());
  }
  note_disk(disk_writer_.poll());
  since_save_ = Stopwatch();
}

void TrainingCheckpoints::check_not_refused(std::int64_t step) const {
  if (!refused_.empty()) {
    throw DivergenceError(fmt::format(
        "step {}: the weights are not finite ({}) and were not saved; {}: lower optimizer.lr, "
        "lengthen the warmup or resume from an earlier checkpoint (checkpoint.resume=STEP)",
        step, refused_,
        durable_step_ < 0 ? "there is no checkpoint"
                          : fmt::format("the newest checkpoint is step {}", durable_step_)));
  }
}

bool TrainingCheckpoints::finish(std::int64_t step) {
  if (memory_ != nullptr) {
    note_memory(memory_->writer.finish());
  }
  note_disk(disk_writer_.finish());
  since_save_ = Stopwatch();
  return durable_step_ == step;
}

bool TrainingCheckpoints::quiet_within(std::chrono::duration<double> limit) {
  const bool is_written = disk_writer_.quiet_within(limit);
  const bool is_quiet = disk_.quiet_within(limit);
  deleted_.record(parts_.audit);
  return is_quiet && is_written;
}

SnapshotMemory TrainingCheckpoints::snapshots() const {
  const std::int64_t in_memory = memory_ == nullptr ? 0 : memory_->target.bytes();
  const std::int64_t plain = memory_ == nullptr ? 0 : memory_->target.plain_bytes();
  return {disk_.snapshot_bytes() + in_memory + plain, is_tmpfs(parts_.node.folder) ? in_memory : 0};
}

void TrainingCheckpoints::note_disk(const std::optional<SaveOutcome>& outcome) {
  deleted_.record(parts_.audit);
  if (!outcome) {
    return;
  }
  if (outcome->fenced) {
    throw PolicyError(fmt::format(
        "step {} was not saved and this run ends, because it no longer owns its checkpoint "
        "folder: {}",
        outcome->step, outcome->message));
  }
  const WriterStats& stats = disk_writer_.stats();
  report_.disk(*outcome, disk_stall_, stats.waits);
  failure_ = outcome->durable ? "" : outcome->message;
  if (outcome->durable) {
    audit("checkpoint.saved", parts_.config.checkpoint_dir() / step_folder_name(outcome->step),
          provenance_ == nullptr ? StepDigests() : provenance_->latest(),
          {{"step", outcome->step}, {"bytes", outcome->bytes}});
    durable_step_ = outcome->step;
    longest_save_seconds_ = std::max(longest_save_seconds_, outcome->seconds);
    // With copies in memory, a save on disk stalls training hardly at all; its cost is then the
    // time for which it uses the disk, which other users share.
    policy_.learn_disk(memory_ == nullptr ? disk_stall_ : stats.last_write_seconds,
                       outcome->seconds);
  }
}

void TrainingCheckpoints::audit(std::string_view event, const std::filesystem::path& step_folder,
                                const StepDigests& digests, nlohmann::ordered_json details) const {
  if (parts_.audit) {
    if (!step_folder.empty()) {
      add_step_details(step_folder, digests, details);
    }
    parts_.audit(event, details);
  }
}

void TrainingCheckpoints::note_memory(const std::optional<SaveOutcome>& outcome) {
  if (!outcome) {
    return;
  }
  const double stall = memory_->writer.stats().last_stall_seconds;
  report_.memory(*outcome, stall);
  if (outcome->durable) {
    policy_.learn_memory(stall, outcome->seconds);
  }
}

}  // namespace trireme
