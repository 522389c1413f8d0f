// Checks for `trireme doctor` whether a start can take the weights of checkpoint.init_from. Reads
// the manifest, and keys if the checkpoint is encrypted.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Collective. Returns the findings on rank 0.
std::vector<Finding> check_taken_weights(const RunConfig& config, Communicator& world);

}  // namespace trireme
