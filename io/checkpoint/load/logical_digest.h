// Computes the digest of a checkpoint's contents, which does not depend on the ranks, blocks and
// files with which it was saved.
//
// It is the SHA-256 over, for each tensor in bytewise order of the names,
//   name, 0x00, dtype ("F32"), 0x00, shape ("[2, 3]", "[]" for a scalar), 0x00,
//   then its elements, row-major, little-endian.
// Names contain no zero byte, so that different contents never give the same input.
#pragma once

#include <filesystem>
#include <string>

#include "io/checkpoint/manifest.h"

namespace trireme {

enum class DigestScope { all, model };  // model: without the tensors named optimizer.*

// Returns "sha256:<64 digits>". Throws DataError if a byte that it reads is damaged.
std::string logical_digest(const std::filesystem::path& step_folder, const Manifest& manifest,
                           DigestScope scope);

}  // namespace trireme
