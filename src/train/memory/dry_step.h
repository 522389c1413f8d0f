// A training step of one rank without arithmetic, to learn what it takes of memory: the model's own
// layers, the pipeline's own runner and the reducer's own buckets run on pools that count, with
// kernels that do nothing. Pure functions of configuration, layout and rank.
#pragma once

#include "src/train/engine/engine.h"

namespace trireme {

// Bytes of one rank.
struct StepMemory {
  std::int64_t computes = 0;     // as the layers multiply with them, at home
  std::int64_t masters = 0;      // 0 where the computes are f32
  std::int64_t states = 0;       // the optimizer's, and Muon's workspace
  std::int64_t gradients = 0;    // the most at one time
  std::int64_t gathered = 0;     // ZeRO 3: computes that are not at home, the most at one time
  std::int64_t activations = 0;  // what the pool of activations takes from the system
  std::int64_t exchanged = 0;    // the same of activations that move between ranks
  std::int64_t snapshot = 0;     // of a checkpoint
  // The most that is handed out at one time by the pools of the two above.
  std::int64_t peak_activations = 0;
  std::int64_t peak_exchanged = 0;
  friend bool operator==(const StepMemory&, const StepMemory&) = default;
};

// Of messages between stages that wait for their receiver, none: they are few beside the
// activations that are kept. Reductions end no earlier than somebody waits for them.
StepMemory step_memory(const RunConfig& config, const Layout& layout, int rank);

// What an engine has taken so far, by its own counters; the snapshot is what it would save.
StepMemory taken_memory(const Engine& engine);

}  // namespace trireme
