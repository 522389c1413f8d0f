// Writes a dataset of random tokens, for benchmarks.
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/data/dataset_keys.h"

namespace trireme {

// folder: new or empty. token_bytes: 2 or 4. bytes: of all tokens. make_key: if not empty, the
// dataset is encrypted.
void write_random_tokens(const std::filesystem::path& folder, int token_bytes, std::int64_t bytes,
                         const DatasetKeyMaker& make_key = {});

}  // namespace trireme
