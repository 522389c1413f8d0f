#include "src/interchange/elements.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "io/checkpoint/workers.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::uint32_t kExponent = 0x7F800000;

// The floats of all 65,536 halves: a look-up is several times faster than the conversion.
const std::vector<float>& half_values() {
  static const std::vector<float> values = [] {
    std::vector<float> all(65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      all[bits] = to_float(f16{static_cast<std::uint16_t>(bits)});
    }
    return all;
  }();
  return values;
}

template <class T>
T element(const std::byte* from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// A tensor without elements may have no memory.
void copy_floats(const void* from, std::int64_t count, void* to) {
  if (count > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

}  // namespace

void widen(const std::byte* from, DType dtype, std::int64_t count, float* to) {
  if (dtype == DType::f32) {
    copy_floats(from, count, to);
  } else if (dtype == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = to_float(element<bf16>(from, i));
    }
  } else if (dtype == DType::f16) {
    const float* const values = half_values().data();
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = values[element<std::uint16_t>(from, i)];
    }
  } else if (dtype == DType::f64) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<float>(element<double>(from, i));
    }
  } else {
    throw DataError(
        fmt::format("its elements are {}, not floating-point numbers", dtype_name(dtype)));
  }
}

std::int64_t narrow(const float* from, std::int64_t count, DType dtype, std::byte* to) {
  if (dtype == DType::f32) {
    copy_floats(from, count, to);
    return count;
  }
  check(dtype == DType::bf16 || dtype == DType::f16, "weights become f32, bf16 or f16");
  const std::uint16_t infinity = dtype == DType::bf16 ? 0x7F80 : 0x7C00;
  bool is_lost = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = dtype == DType::bf16 ? to_bf16(from[i]).bits : to_f16(from[i]).bits;
    is_lost = is_lost || (bits & 0x7FFF) == infinity;
    std::memcpy(to + 2 * i, &bits, 2);
  }
  for (std::int64_t i = 0; is_lost && i < count; ++i) {
    if ((element<std::uint16_t>(to, i) & 0x7FFF) == infinity && std::isfinite(from[i])) {
      return i;
    }
  }
  return count;
}

std::int64_t first_not_finite(const float* from, std::int64_t count) {
  constexpr std::int64_t kPart = 1 << 20;
  const std::int64_t parts = (count + kPart - 1) / kPart;
  std::atomic<bool> is_bad = false;
  parallel_for(available_processors(), parts, [&](std::int64_t part) {
    const std::int64_t end = std::min(count, (part + 1) * kPart);
    std::uint32_t bad = 0;
    for (std::int64_t i = part * kPart; i < end; ++i) {
      bad |= (std::bit_cast<std::uint32_t>(from[i]) & kExponent) == kExponent ? 1U : 0U;
    }
    if (bad != 0) {
      is_bad = true;
    }
  });
  for (std::int64_t i = 0; is_bad && i < count; ++i) {
    if (!std::isfinite(from[i])) {
      return i;
    }
  }
  return count;
}

}  // namespace trireme
