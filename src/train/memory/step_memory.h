// Finds the memory that one rank's training step takes, and the products of matrices that it
// computes. Memory is counted in an engine that has run; both are predicted with an engine that
// runs a step on a counting device, where memory has sizes but no bytes and kernels do nothing
// (src/device/device.h). The functions have no state.
#pragma once

#include <vector>

#include "src/compute/counting_device.h"
#include "src/kernels/cuda_kernels.h"
#include "src/train/engine/engine.h"

namespace trireme {

// StepMemory counts the bytes of one rank.
struct StepMemory {
  std::int64_t working_copies = 0;  // working copies of the parameters that the rank always holds
  std::int64_t masters = 0;         // 0 if the working copies are f32
  std::int64_t states = 0;          // optimizer state, and Muon's workspace
  std::int64_t gradients = 0;       // peak
  std::int64_t gathered = 0;        // ZeRO 3: working copies gathered from other ranks, peak
  std::int64_t activations = 0;     // that the pool of activations takes from the system
  std::int64_t exchanged = 0;       // the same for activations that are transferred between ranks
  std::int64_t snapshot = 0;        // one rank's part of a checkpoint
  std::int64_t loading = 0;         // for a while at the start, when a teacher is loaded
  // The peak of what these two pools hand out at one time.
  std::int64_t peak_activations = 0;
  std::int64_t peak_exchanged = 0;
  std::int64_t scratch = 0;  // predicted for sums over NCCL; an engine does not know it
  friend bool operator==(const StepMemory&, const StepMemory&) = default;
};

// Predicts a run's memory from its largest step and from the steps of the batch ramp that need most
// for gradients. Messages between stages count as received at once, because they are small relative
// to the activations that are kept. Fault points have no effect in it. counting: kCountsCpu or
// kCountsCuda.
StepMemory step_memory(const RunConfig& config, const Layout& layout, int rank,
                       Device counting = kCountsCpu);

// LibraryCalls holds what a library may compute on a CUDA device. Of the operands, only the
// alignment counts, not the addresses.
struct LibraryCalls {
  std::vector<Matmul> products = {};
  AttentionCalls attention = {};
};
// Return the different calls of a rank: in a step, and in the evaluation of micro-batches of so
// many samples.
LibraryCalls step_calls(const RunConfig& config, const Layout& layout, int rank);
LibraryCalls evaluation_calls(const RunConfig& config, const Layout& layout, int rank,
                              const std::vector<std::int64_t>& samples);

// Returns what an engine has taken so far.
StepMemory taken_memory(const Engine& engine);

}  // namespace trireme
