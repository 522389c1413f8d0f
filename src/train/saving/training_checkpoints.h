// TrainingCheckpoints saves a run's state to disk and to the nodes' memory when its policy says so,
// and restores it. It connects the training state with io/checkpoint. A step that goes to both is
// copied once, into memory, and written to disk from there. It is owned by TrainingParts. Unless
// marked otherwise, all ranks make each call together, on the main thread, at a step boundary.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/memory/memory_target.h"
#include "io/checkpoint/writer.h"
#include "src/base/stopwatch.h"
#include "src/train/engine/engine.h"
#include "src/train/memory/memory_report.h"
#include "src/train/run/energy_used.h"
#include "src/train/saving/checkpoint_label.h"
#include "src/train/saving/checkpoint_provenance.h"
#include "src/train/saving/deleted_steps.h"
#include "src/train/saving/first_weights.h"
#include "src/train/saving/host_mirror.h"
#include "src/train/saving/resume_check.h"
#include "src/train/saving/saving_policy.h"

namespace trireme {

class TrainingCheckpoints {
 public:
  struct Parts {
    const RunConfig& config;
    const RunFingerprints& fingerprints;
    Engine& engine;
    Communicator& world;
    Log& log;
    const NodeMemory& node;
    double mtbf_hours;  // observed by the launcher; 0 means unknown
    // Records an event in the site's audit log; may be empty.
    std::function<void(std::string_view event, const nlohmann::ordered_json& details)> audit;
    const RunOrigin* origin;              // null on all ranks if no provenance is to be signed
    StepKeys* keys;                       // null on all ranks if nothing is encrypted
    std::vector<UsedDataset> train = {};  // of data.train; empty without a dataset
    const Access* access = nullptr;       // null on all ranks if no policy is asked
    // Returns what the run has used so far, for its provenance; collective. May be empty.
    std::function<EnergyUsed()> energy = {};
  };
  // Takes the lock of the checkpoint folder, as described for DiskTarget.
  explicit TrainingCheckpoints(const Parts& parts);

  // Fills weights, moments and counters from the checkpoint that the configuration asks for, or
  // from step `only` if given, and logs which steps it skipped. Returns nothing if the run starts
  // anew.
  std::optional<TrainingCounters> resume(std::optional<std::int64_t> only = std::nullopt);
  // Checks whether the policy lets the run learn from another run's checkpoint, as its first
  // weights or as its teacher. Its label then joins those of this run.
  void begin_from(const Manifest& manifest, const std::filesystem::path& folder) {
    label_.check_reading(manifest, folder);
    label_.join(manifest.meta.label);
  }
  // Does the same for the step that checkpoint.init_from names, which the provenance states.
  // tokenizer_digest: that of the files beside it (step_tokenizer.h).
  void begin_from_base(const StepFolder& base, const std::string& tokenizer_digest) {
    begin_from(*base.manifest, base.path);
    if (provenance_ != nullptr) {
      provenance_->took_weights(base);
    }
    if (!parts_.config.model.has_frozen()) {
      first_weights_ = first_weights_of(base, tokenizer_digest);
    }
  }
  // Notes for the provenance which sets of data.validation were opened; the run goes on without the
  // others. Joins the labels of the sets with that of the checkpoints. Not collective.
  void opened_validation(const std::vector<UsedDataset>& sets);
  // Throws PolicyError on all ranks if the site's policy forbids saving checkpoints with the
  // label that they will get: the join of the data's and that of the checkpoint that was resumed.
  void check_writing() const { label_.check_writing(); }
  // Returns that label.
  const std::optional<Label>& label() const { return label_.value(); }
  // Allocates the memory of snapshots, so that the first save stalls no longer than later ones.
  // Call it after resume().
  void reserve();
  // Returns whether a save on disk is due after this step. Not collective.
  bool disk_due(std::int64_t step) const { return policy_.disk_due(step); }
  // Returns whether a save on disk or in memory is due after this step. Not collective.
  bool save_due(std::int64_t step) const;
  // Saves on disk and in memory where due, and on disk in any case if `anyway`. Does not save again
  // what was already saved or loaded, nor weights that are not finite: they would displace a good
  // checkpoint.
  void save_if_due(const TrainingCounters& counters, bool anyway);
  // Saves on disk a step that was loaded, with counters that have changed since then, and waits
  // until it is durable or has failed.
  void save_again(const TrainingCounters& counters);
  // Advances saves in flight and logs their outcome. This, save_if_due() and finish() throw
  // PolicyError on every rank if another run has taken over the folder.
  void poll();
  // Waits for at most about `limit`. Returns whether no background work on disk is left; if not,
  // the object must never be destroyed. Not collective.
  bool quiet_within(std::chrono::duration<double> limit);
  // Waits until nothing is in flight. Returns whether `step` is durable on disk.
  bool finish(std::int64_t step);
  // Returns why the latest save on disk failed, or "" if it did not.
  const std::string& failure() const { return no_key_.empty() ? failure_ : no_key_; }
  SnapshotMemory snapshots() const;

  // Throws DivergenceError on every rank if save_if_due() did not save its last step, `step`,
  // because the weights were not finite.
  void check_not_refused(std::int64_t step) const;
  // Returns the longest time from a snapshot until its step was durable on disk, or 0 before the
  // first save.
  double longest_save_seconds() const { return longest_save_seconds_; }

 private:
  struct Memory {
    Memory(Communicator& world, const NodeMap& nodes, MemoryOptions options)
        : target(world, nodes, std::move(options)), writer(world, target) {}
    MemoryTarget target;
    CheckpointWriter writer;
  };

  DiskOptions disk_options();
  ResumeOptions resume_options(std::optional<std::int64_t> only) const;
  std::vector<TensorBlock> blocks_to_save() const;
  HostMirror::Copy copy_to_host();
  CheckpointMeta meta_of(const TrainingCounters& counters) const;
  bool open_memory();
  bool make_key(std::int64_t step);
  void note_energy(std::int64_t step);
  void save_in_memory(const CheckpointMeta& meta);
  void save_on_disk(const CheckpointMeta& meta);
  void audit(std::string_view event, const std::filesystem::path& step_folder,
             const StepDigests& digests, nlohmann::ordered_json details) const;
  void note_disk(const std::optional<SaveOutcome>& outcome);
  void note_memory(const std::optional<SaveOutcome>& outcome);

  Parts parts_;
  CheckpointLabel label_;
  SaveReport report_;
  SavingPolicy policy_;
  ResumeCheck check_;
  HostMirror mirror_;  // outlives the writers, which read its memory in the background
  std::optional<JsonValue> first_weights_;            // the record, if the run has one
  std::unique_ptr<CheckpointProvenance> provenance_;  // on rank 0, if there is an origin
  DeletedSteps deleted_;  // outlives the target, which adds to it in the background
  DiskTarget disk_;
  CheckpointWriter disk_writer_;
  NodeMap nodes_;
  std::string run_;  // the checkpoint folder, as rank 0 sees it
  std::optional<MemoryStepName> resumed_;
  std::unique_ptr<Memory> memory_;  // null if checkpoints go to disk only
  // Keys of the latest save, and of the latest one in memory; null if nothing is encrypted.
  std::shared_ptr<const FolderKey> key_;
  std::shared_ptr<const FolderKey> memory_key_;
  std::int64_t durable_step_ = -1;  // the newest step known to be on disk
  std::string failure_;             // why the latest save on disk failed; or empty
  std::string no_key_;              // why the latest save lacked a key and did not begin; or empty
  std::string no_key_warning_;      // the latest warning that says so
  std::string refused_;  // which weights were not finite at the last step that was due; or empty
  std::int64_t refused_step_ = -1;  // the last step that was not saved for this reason
  double longest_save_seconds_ = 0;
  double disk_stall_ = 0;  // stall of the latest save on disk, including the copy
  Stopwatch since_save_;   // time since the latest call here ended, that is, of a training step
};

}  // namespace trireme
