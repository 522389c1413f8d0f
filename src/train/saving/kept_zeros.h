// Says at the start of a run with optimizer.keep_zeros how many weights stay zero, because a base
// that was not pruned has none, and the option then does nothing.
#pragma once

#include <cstdint>
#include <string>

#include "mpi/communicator.h"
#include "src/train/engine/engine.h"

namespace trireme {

struct KeptZeros {
  std::int64_t zeros = 0;
  std::int64_t elements = 0;  // of all matrices
};

// Collective. Counts the weights of matrices that are exactly zero now, each once.
KeptZeros count_kept_zeros(Engine& engine, Communicator& world);
// Returns the line for the log.
std::string text_of(const KeptZeros& kept);

}  // namespace trireme
