// Writes a dataset of random tokens, for benchmarks.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trireme {

// folder: new or empty. token_bytes: 2 or 4. bytes: of all tokens.
void write_random_tokens(const std::filesystem::path& folder, int token_bytes, std::int64_t bytes);

}  // namespace trireme
