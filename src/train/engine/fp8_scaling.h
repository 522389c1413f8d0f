// Fp8Scaling holds what train.products: fp8 needs in a step: the scales of the operands, and with
// delayed scaling the largest magnitudes of this step, from which later steps have their scales
// (Micikevicius et al., FP8 Formats for Deep Learning, 2022). The magnitudes are maxima over all
// micro-batches and all ranks, which do not depend on any order, so that they are the same in every
// layout. Their history lies in TrainingCounters, and so in each checkpoint. Owned by Engine; one
// thread. The constructor and finish_step() are collective.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "src/compute/host_reads.h"
#include "src/nn/fp8_products.h"
#include "src/train/engine/model_chunk.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/run_config.h"

namespace trireme {

class Fp8Scaling {
 public:
  // All three outlive it.
  Fp8Scaling(const RunConfig& config, const ModelChunks& chunks, Communicator& world);

  // Returns what the products of a chunk take; null unless train.products is fp8.
  const Fp8Products* products(int chunk) const {
    return is_on_ ? &products_[static_cast<std::size_t>(chunk)] : nullptr;
  }
  // Sets the scales of a step from the history, in the order of the stream, without a wait.
  // Operands that have no history yet have current scales.
  void begin_step(const Fp8History& history);
  // Add the magnitudes of this rank to what the step reads, and take them after the wait.
  void read(HostReads& reads);
  void take(const HostReads& reads);
  // Adds the magnitudes that were taken, as the maxima over all ranks, to the history.
  void finish_step(Fp8History& history);

 private:
  struct ChunkState {
    Tensor scales;  // f32 [parameters, kRoles]
    Tensor most;
    std::size_t read = 0;                 // number of the read of `most`
    std::vector<std::size_t> parameters;  // numbers of the chunk's parameters among names_
  };

  std::vector<float> scales_of(const ChunkState& state, const Fp8History& history) const;

  const RunConfig& config_;
  const ModelChunks& chunks_;
  Communicator& world_;
  bool is_on_;
  bool is_delayed_;
  std::vector<std::string> names_;  // of the parameters of all ranks, sorted
  std::vector<ChunkState> states_;
  std::vector<float> magnitudes_;  // of this step, by name and role; 0 for other ranks' parameters
  std::vector<Fp8Products> products_;
};

}  // namespace trireme
