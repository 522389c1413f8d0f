// TrainingCheckpoints: saves a run's state where and when its policy says, and restores it. Joins
// the training state with io/checkpoint: the disk, and the nodes' memory where there is any. A step
// that goes to both is copied once, into memory, and written to disk from there. Every call is
// collective, on the main thread, at a step boundary.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/memory/memory_target.h"
#include "io/checkpoint/writer.h"
#include "src/base/stopwatch.h"
#include "src/train/engine/engine.h"
#include "src/train/memory/memory_report.h"
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
    double mtbf_hours;  // as the launcher has seen; 0: unknown
  };
  // Takes the lock of the checkpoint folder.
  explicit TrainingCheckpoints(const Parts& parts);

  // Fills weights, moments and counters from the checkpoint that the configuration asks for; says
  // what it skipped. Nothing if the run starts afresh. `only`: from this step, whatever the
  // configuration says.
  std::optional<TrainingCounters> resume(std::optional<std::int64_t> only = std::nullopt);
  // Takes the memory of snapshots, so that the first save stalls no longer than later ones. After
  // resume().
  void reserve();
  // Whether a save on disk is due after this step.
  bool disk_due(std::int64_t step) const { return policy_.disk_due(step); }
  // Or one in memory.
  bool save_due(std::int64_t step) const;
  // Saves on the levels that are due, on disk `anyway`; not what was saved or loaded already.
  void save_if_due(const TrainingCounters& counters, bool anyway);
  // Saves on disk a step that was loaded, with counters that have changed since, and waits for it.
  void save_again(const TrainingCounters& counters);
  // Moves saves in flight along; logs their outcome. This, save_if_due() and finish() throw
  // PolicyError on every rank when another run has taken the folder over.
  void poll();
  // Whether nothing is left in the background after so long: else this must never be destroyed.
  bool quiet_within(std::chrono::duration<double> limit);
  // Until nothing is in flight. Returns whether `step` is durable.
  bool finish(std::int64_t step);
  SnapshotMemory snapshots() const;

  // The newest step that is known to be on disk; -1: none.
  std::int64_t durable_step() const { return durable_step_; }
  // From the copy until it was durable; 0: nothing was saved yet.
  double longest_save_seconds() const { return longest_save_seconds_; }

 private:
  struct Memory {
    Memory(Communicator& world, const NodeMap& nodes, MemoryOptions options)
        : target(world, nodes, std::move(options)), writer(world, target) {}
    MemoryTarget target;
    CheckpointWriter writer;
  };

  ResumeOptions resume_options(std::optional<std::int64_t> only) const;
  std::vector<TensorBlock> blocks_to_save() const;
  CheckpointMeta meta_of(const TrainingCounters& counters) const;
  bool open_memory();
  void save_in_memory(const CheckpointMeta& meta);
  void save_on_disk(const CheckpointMeta& meta);
  void note_disk(const std::optional<SaveOutcome>& outcome);
  void note_memory(const std::optional<SaveOutcome>& outcome);

  Parts parts_;
  SaveReport report_;
  SavingPolicy policy_;
  ResumeCheck check_;
  DiskTarget disk_;
  CheckpointWriter disk_writer_;
  NodeMap nodes_;
  std::string run_;  // the checkpoint folder, as rank 0 sees it
  std::optional<MemoryStepName> resumed_;
  std::unique_ptr<Memory> memory_;  // null: the disk alone
  std::int64_t durable_step_ = -1;
  double longest_save_seconds_ = 0;
  double disk_stall_ = 0;  // of the latest save, the copy included
  Stopwatch since_save_;   // since the latest call here ended: a training step
};

}  // namespace trireme
