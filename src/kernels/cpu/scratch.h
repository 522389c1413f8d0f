// Working memory of the cpu kernels: a growing buffer for each calling thread and purpose, so that
// a step allocates nothing after the first. Aligned to 64 bytes. Contents are undefined, and lost
// when the same slot is asked for again.
#pragma once

#include <cstdint>

namespace trireme::cpu {

enum class Scratch : std::uint8_t {
  parts,   // of a kernel that reduces over blocks, or packs its operands
  onednn,  // oneDNN's own
  a,       // operands of a product, widened
  b,
  bias,
  c,  // a product before it is rounded
  count
};

// At least so many bytes; valid until this thread's next call with the slot. The team of a parallel
// region may use what its caller asked for. DeviceError if there is no memory.
void* scratch(Scratch slot, std::int64_t bytes);

}  // namespace trireme::cpu
