// TrainingCheckpoints: when a run saves, what it saves, and from where it goes on. Joins the
// training state with io/checkpoint. Every call is collective, on the main thread, at a step
// boundary.
#pragma once

#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "io/checkpoint/resume.h"
#include "io/checkpoint/writer.h"
#include "src/base/log.h"
#include "src/train/engine.h"
#include "src/train/run_config.h"
#include "src/train/training_state.h"

namespace trireme {

struct RunFingerprints {
  nlohmann::json config;
  nlohmann::json numerics;
  nlohmann::json extra;  // what readers of the checkpoint want to know: tokenizer, software
};

class TrainingCheckpoints {
 public:
  struct Parts {
    const RunConfig& config;
    const RunFingerprints& fingerprints;
    Engine& engine;
    Communicator& world;
    Log& log;
  };
  // Takes the lock of the checkpoint folder.
  explicit TrainingCheckpoints(const Parts& parts);

  // Fills weights, moments and counters from the checkpoint that the configuration asks for; says
  // what it skipped. Nothing if the run starts afresh.
  std::optional<TrainingCounters> resume();
  // Takes the memory of a snapshot, so that the first save stalls no longer than later ones.
  void reserve();
  // Whether a save is due after this step.
  bool due(std::int64_t step) const;
  // Does nothing for a step that was saved or loaded already.
  void save(const TrainingCounters& counters);
  // Moves a save in flight along; logs its outcome. This, save() and finish() throw PolicyError on
  // every rank when another run has taken the folder over.
  void poll();
  // Until nothing is in flight. Returns whether `step` is durable.
  bool finish(std::int64_t step);
  // Memory that snapshots take.
  std::int64_t snapshot_bytes() const { return writer_.snapshot_bytes(); }

 private:
  void accept(const Manifest& manifest) const;
  std::vector<TensorBlock> blocks_to_save() const;
  void note(const std::optional<SaveOutcome>& outcome);

  Parts parts_;
  CheckpointWriter writer_;
  std::int64_t requested_step_ = -1;  // of the latest save
  std::int64_t durable_step_ = -1;
};

}  // namespace trireme
