// Compares the weights that a manifest states with those that its model has.
#pragma once

#include "io/checkpoint/manifest.h"
#include "src/nn/model_config.h"

namespace trireme {

// Throws DataError if the checkpoint stores fewer weights than its model has. Call it before the
// model is declared, which takes memory for every layer.
void check_stored_count(const Manifest& manifest, const ModelConfig& config);

// Throws DataError that names the first ones if the checkpoint stores weights, or moving averages
// of weights, that its model does not have: its configuration is not the one that it was trained
// with. config: with adapters, of a checkpoint that stores them alone. Call it after
// check_stored_count().
void check_stored_weights(const Manifest& manifest, const ModelConfig& config);

}  // namespace trireme
