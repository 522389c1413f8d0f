// Checks the keys of encrypted checkpoints for `trireme doctor`: whether they open on this host,
// and what could write them or the weights to a disk.
#pragma once

#include <string>
#include <vector>

#include "slurm/doctor/finding.h"
#include "src/train/run/run_config.h"

namespace trireme {

// The codes are those of a start. locks_memory: whether security.lock_memory keeps the weights out
// of swap. host: where it was checked.
std::vector<Finding> check_keys(const EncryptionConfig& config, bool locks_memory,
                                const std::string& host);

// Returns whether the text of /proc/swaps lists a swap area that is not known to be encrypted.
// Pure function.
bool may_swap_in_plain(std::string_view swaps);

}  // namespace trireme
