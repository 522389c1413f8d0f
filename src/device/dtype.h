// Defines the element types, and bfloat16 as a value.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace trireme {

enum class DType : std::uint8_t { f32, bf16, f64, i32, i64, u8, u16, u32 };

constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

// Returns the type's name in safetensors: "F32", "BF16", ...
std::string_view dtype_name(DType dtype);
// Throws DataError for a name that dtype_name() does not return.
DType parse_dtype(std::string_view name);

// bf16 is the upper half of a float. Arithmetic is done in float.
struct bf16 {
  std::uint16_t bits;
};

constexpr float to_float(bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// Rounds to nearest, ties to even. NaN stays NaN.
constexpr bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace trireme
