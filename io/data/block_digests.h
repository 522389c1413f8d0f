// Computes the XXH3 digests of a file, per digest block of 1 MiB and whole, and words the message
// about a damaged block. Pure functions, callable from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/file.h"

namespace trireme {

inline constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

constexpr std::int64_t block_count(std::int64_t bytes) {
  return bytes / kBlockBytes + (bytes % kBlockBytes != 0 ? 1 : 0);
}

// Returns the size in bytes of block `block` in a file of `file_bytes` bytes; the last may be
// short.
constexpr std::int64_t block_bytes(std::int64_t block, std::int64_t file_bytes) {
  const std::int64_t left = file_bytes - block * kBlockBytes;
  return left < kBlockBytes ? left : kBlockBytes;
}

struct FileDigests {
  std::int64_t bytes = 0;
  std::uint64_t whole = 0;            // XXH3-64 of the file
  std::vector<std::uint64_t> blocks;  // XXH3-64 of each block; the last block may be short
};

// Reads the file once from its start. `each`, if given, is called with every block's data and its
// size in bytes.
FileDigests digest_file(const File& file,
                        const std::function<void(const void*, std::int64_t)>& each = {});

// Returns "FILE: block 3, bytes [3145728, 4194304): expected the XXH3 digest 0123..., but found
// 4567...: ...".
std::string damage_text(const std::filesystem::path& path, std::int64_t block,
                        std::int64_t file_bytes, std::uint64_t expected, std::uint64_t found);

}  // namespace trireme
