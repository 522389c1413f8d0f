// The digest of the cpu tables: XXH3 of the bytes. Compiled once for all instruction sets; callable
// from any thread.
#pragma once

#include "src/device/stream.h"

namespace trireme::cpu {

// digest: i64 [1]; x: any type.
void digest(Stream& stream, View digest, ConstView x);

}  // namespace trireme::cpu
