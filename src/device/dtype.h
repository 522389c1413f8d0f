// Defines the element types, and bfloat16 and half precision as values.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace trireme {

enum class DType : std::uint8_t { f32, bf16, f64, i32, i64, u8, u16, u32, f16 };

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
    case DType::f16:
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

// f16 is IEEE half precision: 5 bits of exponent, 10 of fraction. Arithmetic is done in float.
struct f16 {
  std::uint16_t bits;
};

constexpr float to_float(f16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const std::uint32_t exponent = x.bits >> 10 & 0x1FU;
  const std::uint32_t fraction = x.bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

// Rounds to nearest, ties to even, and beyond the largest number, 65504, to infinity. NaN stays
// NaN.
constexpr f16 to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  if (size > 0x7F800000U) {
    return {static_cast<std::uint16_t>(sign | 0x7E00U)};
  }
  if (size >= 0x477FF000U) {  // 65520 and more
    return {static_cast<std::uint16_t>(sign | 0x7C00U)};
  }
  if (size < 0x38800000U) {  // below 2^-14, adding 1/2 rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(size) + 0.5F;
    return {
        static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U))};
  }
  const std::uint32_t rounded = size + 0xFFFU + (size >> 13 & 1U) - (112U << 23);
  return {static_cast<std::uint16_t>(sign | rounded >> 13)};
}

}  // namespace trireme
