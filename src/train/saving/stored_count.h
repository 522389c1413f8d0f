// Compares how many weights a manifest states with how many its model has.
#pragma once

#include "io/checkpoint/manifest.h"
#include "src/nn/model_config.h"

namespace trireme {

// Throws DataError if the checkpoint stores fewer weights than its model has. Call it before the
// model is declared, which takes memory for every layer.
void check_stored_count(const Manifest& manifest, const ModelConfig& config);

}  // namespace trireme
