// Provides the working memory of the cpu kernels: one growing buffer per calling thread and
// purpose, so that steps after the first allocate nothing. Aligned to 64 bytes. Contents are
// undefined, and lost when the slot is requested again.
#pragma once

#include <cstdint>

namespace trireme::cpu {

enum class Scratch : std::uint8_t {
  parts,   // for kernels that reduce over blocks or pack their operands
  onednn,  // oneDNN's scratchpad
  a,       // these three: operands of a product, widened to f32
  b,
  bias,
  c,  // a product before it is rounded
  count
};

// Returns at least `bytes` bytes, valid until this thread's next call with the slot. The team of a
// parallel region may use its caller's memory. Throws DeviceError if there is no memory.
void* scratch(Scratch slot, std::int64_t bytes);

}  // namespace trireme::cpu
