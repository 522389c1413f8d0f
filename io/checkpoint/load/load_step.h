// Loads blocks from the folder of one step, without other ranks or copies.
#pragma once

#include <filesystem>
#include <span>

#include "io/checkpoint/load/checkpoint_loader.h"

namespace trireme {

// Fills the blocks from one step's folder, for this process alone. Throws ConfigError with all
// mismatches, and DataError for damage, after which the blocks hold undefined bytes.
LoadStats load_step(const std::filesystem::path& folder, const Manifest& manifest,
                    std::span<const TensorBlock> blocks, const ShardIo& io = {});

}  // namespace trireme
