// Checks whether a run that trains on GPUs can start with the GPUs that a job requests. Pure.
#pragma once

#include <string_view>

#include "slurm/render/site_profile.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Returns whether gres.conf's type of a GPU names a slice of one, such as "1g.10gb" or
// "nvidia_a100_3g.20gb".
bool is_mig_type(std::string_view gpu_type);

// Throws a ConfigError if every start of the job would be refused: with train.device=cuda where the
// job has no GPU; and with that or auto where ranks would share GPUs, or use MIG slices or MPS,
// without train.share_device. cluster: the profile's file, for the message.
void check_gpus_of_job(const RunConfig& config, const SiteProfile& profile,
                       std::string_view cluster);

}  // namespace trireme
