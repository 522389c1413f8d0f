// Stores and reads one f16 in the bytes of a block (quantized.h). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/device/dtype.h"

namespace trireme {

// to, from: 2 bytes.
inline void put_half(float value, std::byte* to) {
  const std::uint16_t bits = to_f16(value).bits;
  std::memcpy(to, &bits, sizeof bits);
}
inline float half_at(const std::byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return to_float(f16{bits});
}

}  // namespace trireme
