// Computes the digest of the cpu tables, which is XXH3 of the bytes. This file is compiled once for
// all instruction sets. Callable from any thread.
#pragma once

#include "src/device/stream.h"

namespace trireme::cpu {

// digest: i64 [1]; x: any type.
void digest(Stream& stream, View digest, ConstView x);

}  // namespace trireme::cpu
