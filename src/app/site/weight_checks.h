// Checks for `trireme doctor` whether a start can take the weights of other checkpoints: those of
// checkpoint.init_from, and of distill.teacher. Reads manifests, and keys if they are encrypted.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Collective. config: from with_teacher(). Returns the findings on rank 0.
std::vector<Finding> check_taken_weights(const RunConfig& config, Communicator& world);

}  // namespace trireme
