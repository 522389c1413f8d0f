#include "src/train/checkpointing.h"

#include <iterator>

#include <fmt/ranges.h>

#include "io/checkpoint/fingerprint.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"

namespace trireme {
namespace {

WriterOptions writer_options(const RunConfig& config) {
  WriterOptions options;
  options.folder = config.checkpoint_dir();
  options.force = config.checkpoint.force_lock;
  options.retention = {config.checkpoint.keep, config.checkpoint.keep_every};
  return options;
}

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const Parts& parts)
    : parts_(parts), writer_(parts.world, writer_options(parts.config)) {}

std::optional<TrainingCounters> TrainingCheckpoints::resume() {
  const CheckpointConfig& config = parts_.config.checkpoint;
  const std::filesystem::path folder = parts_.config.checkpoint_dir();
  ResumeOptions options;
  options.accept = [this](const Manifest& manifest) { accept(manifest); };
  if (config.resume.is("never")) {
    options.accept = [&](const Manifest& manifest) {
      throw ConfigError(fmt::format(
          "checkpoint.resume is never, but {} holds step {}: choose another checkpoint.dir, or "
          "remove the old checkpoints",
          folder.string(), manifest.meta.step));
    };
  } else if (!config.resume.is("auto")) {
    options.step = config.resume.integer;
  }
  std::vector<BlockRequest> requests;
  for (const auto& chunk : parts_.engine.chunks()) {
    append(requests, blocks_to_load(chunk->parameters, chunk->state.pieces_to_load()));
  }
  const std::optional<Resumed> resumed = trireme::resume(parts_.world, folder, requests, options);
  if (!resumed) {
    return std::nullopt;
  }
  parts_.engine.masters_changed();
  durable_step_ = requested_step_ = resumed->manifest.meta.step;
  if (parts_.world.rank() == 0) {
    for (const std::string& why : resumed->skipped) {
      parts_.log.warning(fmt::format("skipped {}", why));
    }
    parts_.log.info(fmt::format("resumed from {}: {} in {}", resumed->folder.string(),
                                format_bytes(resumed->load.read_bytes),
                                format_seconds(resumed->load.seconds)));
  }
  return counters_from_json(object_field(resumed->manifest.meta.extra, "counters"));
}

void TrainingCheckpoints::accept(const Manifest& manifest) const {
  const RunFingerprints& own = parts_.fingerprints;
  const std::vector<std::string> changed =
      differences(manifest.meta.config, own.config, parts_.config.checkpoint.allow_change);
  if (!changed.empty()) {
    throw ConfigError(fmt::format(
        "the checkpoint of step {} belongs to another run:\n  {}\nGo back to the old values, "
        "choose another checkpoint.dir, or accept a field with checkpoint.allow_change=[FIELD]",
        manifest.meta.step, fmt::join(changed, "\n  ")));
  }
  const std::vector<std::string> numerics = differences(manifest.meta.numerics, own.numerics);
  if (!numerics.empty() && parts_.world.rank() == 0) {
    parts_.log.warning(fmt::format(
        "this run computes in another way than the one that wrote step {}: the bits of an "
        "uninterrupted run are not promised\n  {}",
        manifest.meta.step, fmt::join(numerics, "\n  ")));
  }
}

std::vector<TensorBlock> TrainingCheckpoints::blocks_to_save() const {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : parts_.engine.chunks()) {
    append(blocks, trireme::blocks_to_save(chunk->parameters, chunk->state.pieces_to_save()));
  }
  return blocks;
}

void TrainingCheckpoints::reserve() { writer_.reserve(blocks_to_save()); }

bool TrainingCheckpoints::due(std::int64_t step) const {
  const std::int64_t every = parts_.config.checkpoint.every;
  return step == parts_.config.train.steps || (every > 0 && step % every == 0);
}

void TrainingCheckpoints::save(const TrainingCounters& counters) {
  if (counters.step == requested_step_) {
    return;
  }
  requested_step_ = counters.step;
  CheckpointMeta meta;
  meta.step = counters.step;
  meta.samples = counters.step * parts_.config.train.global_batch;
  meta.config = parts_.fingerprints.config;
  meta.numerics = parts_.fingerprints.numerics;
  meta.extra = parts_.fingerprints.extra;
  meta.extra["counters"] = to_json(counters);
  note(writer_.save(meta, blocks_to_save()));
  if (!parts_.config.checkpoint.async) {
    note(writer_.finish());
  }
}

void TrainingCheckpoints::poll() {
  if (writer_.in_flight()) {
    note(writer_.poll());
  }
}

bool TrainingCheckpoints::finish(std::int64_t step) {
  note(writer_.finish());
  return durable_step_ == step;
}

void TrainingCheckpoints::note(const std::optional<SaveOutcome>& outcome) {
  if (!outcome) {
    return;
  }
  if (outcome->durable) {
    durable_step_ = outcome->step;
  }
  if (outcome->fenced) {
    throw PolicyError(
        fmt::format("step {} is not saved and this run ends, for it no longer owns its checkpoint "
                    "folder: {}",
                    outcome->step, outcome->message));
  }
  if (parts_.world.rank() != 0) {
    return;
  }
  if (!outcome->durable) {
    parts_.log.error(fmt::format("step {} could not be saved, training goes on: {}", outcome->step,
                                 outcome->message));
    return;
  }
  parts_.log.event("checkpoint", {{"step", outcome->step},
                                  {"bytes", outcome->bytes},
                                  {"seconds", outcome->seconds},
                                  {"stall_ms", 1e3 * writer_.stats().last_stall_seconds}});
  parts_.log.info(fmt::format("saved step {}: {} in {}{}{}", outcome->step,
                              format_bytes(outcome->bytes), format_seconds(outcome->seconds),
                              outcome->message.empty() ? "" : "; ", outcome->message));
}

}  // namespace trireme
