// Opens the keys of encrypted checkpoints and datasets that a run's configuration names.
#pragma once

#include <memory>

#include "io/checkpoint/step_keys.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Collective. Returns null if nothing is encrypted.
std::unique_ptr<StepKeys> keys_of(const EncryptionConfig& config, Communicator& world);

}  // namespace trireme
