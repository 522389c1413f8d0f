// The part of TrainingCheckpoints that restores a run from a checkpoint.
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/training_checkpoints.h"

namespace trireme {

ResumeOptions TrainingCheckpoints::resume_options(std::optional<std::int64_t> only) const {
  const IntegerOrWord& resume = parts_.config.checkpoint.resume;
  ResumeOptions options;
  options.keys = parts_.keys;
  options.node = parts_.node;
  options.nodes = &nodes_;
  options.identity = {run_, disk_.generation()};
  options.step = only;
  options.accept = [this](const Manifest& manifest) {
    label_.check_reading(manifest,
                         parts_.config.checkpoint_dir() / step_folder_name(manifest.meta.step));
    check_.accept(manifest);
  };
  options.is_same_model = [this](const Manifest& manifest) {
    return check_.is_same_model(manifest);
  };
  options.nothing_whole = [this](const std::vector<std::string>& skipped) {
    report_.warning(
        fmt::format("no checkpoint is complete in the nodes' memory, and there is none on disk: "
                    "the run starts from the beginning\n  {}",
                    fmt::join(skipped, "\n  ")));
  };
  if (!only && resume.is("never")) {
    options.accept = [folder = parts_.config.checkpoint_dir()](const Manifest& manifest) {
      throw resume_is_never(folder, manifest.meta.step);
    };
  } else if (!only && !resume.is("auto")) {
    options.step = resume.integer;
  }
  return options;
}

std::optional<TrainingCounters> TrainingCheckpoints::resume(std::optional<std::int64_t> only) {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : parts_.engine.chunks()) {
    add_blocks(chunk->parameters, chunk->state.pieces_to_load(), blocks);
  }
  ResumeOptions options = resume_options(only);
  const std::vector<TensorBlock> on_host = mirror_.fetch(blocks);
  options.fault_of_loaded = [&] {
    mirror_.store();
    const std::string not_a_number =
        fault_of_numbers(parts_.engine.context(), blocks, FiniteCheck::all);
    const std::string fault = gather_faults(
        parts_.world, not_a_number.empty() ? fault_of_moments(on_host) : not_a_number);
    return fault.empty() ? "" : fault + " (the run had diverged, or the checkpoint was changed)";
  };
  const std::optional<Resumed> resumed =
      trireme::resume(parts_.world, parts_.config.checkpoint_dir(), on_host, options);
  if (!resumed) {
    return std::nullopt;
  }
  disk_.distrust(resumed->damaged);
  parts_.engine.masters_changed();
  label_.join(resumed->manifest.meta.label);
  first_weights_ = recorded_first_weights(resumed->manifest);
  const CheckpointMeta& meta = resumed->manifest.meta;
  const bool on_disk = !resumed->folder.empty();
  durable_step_ = on_disk ? meta.step : durable_step_;
  if (resumed->from_memory) {
    resumed_ = MemoryStepName{meta.step, resumed->manifest.generation};
  }
  policy_.start(meta.step, on_disk, resumed->from_memory);
  report_.resumed(*resumed);
  if (parts_.origin != nullptr) {
    const std::string warning =
        run_on_root(parts_.world, [&] { return provenance_->resumed(*resumed); });
    if (!warning.empty()) {
      report_.warning(warning);
    }
  }
  audit("checkpoint.resumed", resumed->folder, {resumed->manifest_sha256, ""},
        {{"step", meta.step}, {"from_memory", resumed->from_memory}});
  return check_.counters(meta);
}

void TrainingCheckpoints::opened_validation(const std::vector<UsedDataset>& sets) {
  label_.join(sets);
  if (provenance_ != nullptr) {
    provenance_->opened_validation(sets);
  }
}

}  // namespace trireme
