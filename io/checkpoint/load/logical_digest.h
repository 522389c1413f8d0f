// The digest of a checkpoint's contents: the same whatever ranks, cut and files it was saved with.
//
// SHA-256 over, for each tensor in the bytewise order of the names,
//   name, 0x00, dtype ("F32"), 0x00, shape ("[2, 3]", "[]" for a scalar), 0x00,
//   then its elements, row-major, little-endian.
// Names hold no zero byte, so that nothing else has the same text.
#pragma once

#include <filesystem>
#include <string>

#include "io/checkpoint/manifest.h"

namespace trireme {

enum class DigestScope { all, model };  // model: without the tensors named optimizer.*

// "sha256:<64 digits>". DataError if a byte it reads is damaged.
std::string logical_digest(const std::filesystem::path& step_folder, const Manifest& manifest,
                           DigestScope scope);

}  // namespace trireme
