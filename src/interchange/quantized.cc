#include "src/interchange/quantized.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/base/check.h"
#include "src/device/dtype.h"
#include "src/interchange/elements.h"
#include "src/interchange/half_bytes.h"
#include "src/interchange/quantized_k.h"

namespace trireme {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kHalf = kBlock / 2;
// A smaller scale is 0 as an f16, and its inverse could be infinite.
constexpr float kLeastScale = 1e-20F;

DType plain_dtype(GgufType type) {
  return type == GgufType::f16 ? DType::f16 : type == GgufType::bf16 ? DType::bf16 : DType::f32;
}

bool is_plain(GgufType type) {
  return type == GgufType::f32 || type == GgufType::f16 || type == GgufType::bf16;
}

float inverse_of(float scale) { return std::abs(scale) < kLeastScale ? 0 : 1 / scale; }

// Returns the largest magnitude in a block. The integers have the order of the magnitudes, and
// their maximum does not depend on the order, so that compilers use vectors.
float largest_magnitude(const float* x) {
  std::int32_t most = 0;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    most = std::max(most, std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF);
  }
  return std::bit_cast<float>(most);
}

// Returns what std::round() returns, for magnitudes below 2^31, without a call: the nearest
// integer, and of two the one farther from zero. The difference to the integer before is exact.
std::int32_t rounded(float x) {
  const auto whole = static_cast<std::int32_t>(x);
  const float rest = x - static_cast<float>(whole);
  return whole + (rest >= 0.5F ? 1 : 0) - (rest <= -0.5F ? 1 : 0);
}

void quantize_q8(const float* x, std::byte* to) {
  const float d = largest_magnitude(x) / 127;
  const float inverse = inverse_of(d);
  put_half(d, to);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    to[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(rounded(x[i] * inverse)));
  }
}

void dequantize_q8(const std::byte* from, float* x) {
  const float d = half_at(from);
  for (std::int64_t i = 0; i < kBlock; ++i) {
    x[i] = d * static_cast<float>(static_cast<std::int8_t>(from[2 + i]));
  }
}

void quantize_q4(const float* x, std::byte* to) {
  float most = 0;  // the number of the largest magnitude, with its sign
  for (std::int64_t i = 0; i < kBlock; ++i) {
    most = std::abs(x[i]) > std::abs(most) ? x[i] : most;
  }
  const float d = most / -8;
  const float inverse = inverse_of(d);
  put_half(d, to);
  const auto level = [&](float value) {
    return std::min(15, static_cast<int>(value * inverse + 8.5F));
  };
  for (std::int64_t i = 0; i < kHalf; ++i) {
    to[2 + i] = static_cast<std::byte>(level(x[i]) | level(x[i + kHalf]) << 4);
  }
}

void dequantize_q4(const std::byte* from, float* x) {
  const float d = half_at(from);
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const int both = std::to_integer<int>(from[2 + i]);
    x[i] = d * static_cast<float>((both & 15) - 8);
    x[i + kHalf] = d * static_cast<float>((both >> 4) - 8);
  }
}

}  // namespace

std::int64_t block_elements(GgufType type) {
  return is_plain(type) ? 1 : type == GgufType::q4_k ? kQ4KElements : kBlock;
}

std::int64_t block_bytes(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return 4;
    case GgufType::f16:
    case GgufType::bf16:
      return 2;
    case GgufType::q8_0:
      return 2 + kBlock;
    case GgufType::q4_0:
      return 2 + kHalf;
    case GgufType::q4_k:
      return kQ4KBytes;
  }
  return 0;
}

bool is_known_type(std::uint32_t number) { return block_bytes(static_cast<GgufType>(number)) != 0; }

void quantize(GgufType type, const float* from, std::int64_t count, std::byte* to) {
  if (is_plain(type)) {
    (void)narrow(from, count, plain_dtype(type), to);
    return;
  }
  const auto one = type == GgufType::q8_0   ? quantize_q8
                   : type == GgufType::q4_0 ? quantize_q4
                                            : quantize_q4_k;
  const std::int64_t block = block_elements(type);
  check(count % block == 0, "rows are whole blocks");
  for (std::int64_t i = 0; i < count; i += block, to += block_bytes(type)) {
    one(from + i, to);
  }
}

void dequantize(GgufType type, const std::byte* from, std::int64_t count, float* to) {
  if (is_plain(type)) {
    widen(from, plain_dtype(type), count, to);
    return;
  }
  const auto one = type == GgufType::q8_0   ? dequantize_q8
                   : type == GgufType::q4_0 ? dequantize_q4
                                            : dequantize_q4_k;
  const std::int64_t block = block_elements(type);
  for (std::int64_t i = 0; i < count; i += block, from += block_bytes(type)) {
    one(from, to + i);
  }
}

}  // namespace trireme
