// Element types of GGUF files (ggml), which store a row of numbers as blocks. Pure functions, for
// any thread.
//
//   F32, F16, BF16   1 number     4 or 2 bytes
//   Q8_0             32 numbers   | f16 d | i8 q[32] |                       x = d q
//   Q4_0             32 numbers   | f16 d | u8 q[16]: numbers i, i+16 |      x = d (q - 8)
//   Q4_K             256 numbers  144 bytes, see quantized_k.h
//
// d is the largest magnitude of a block over 127 (Q8_0), or the number of largest magnitude over -8
// (Q4_0). Source of the formats: ggml's quantization, as its gguf.md names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trireme {

enum class GgufType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, bf16 = 30 };

// Return the size of a block, in numbers and in bytes.
std::int64_t block_elements(GgufType type);
std::int64_t block_bytes(GgufType type);
// Returns the bytes of `count` numbers, a multiple of the block's.
inline std::int64_t quantized_bytes(GgufType type, std::int64_t count) {
  return count / block_elements(type) * block_bytes(type);
}
// Returns whether the number is that of a type that these functions know.
bool is_known_type(std::uint32_t number);

// from: [count] finite numbers; to: [quantized_bytes(type, count)].
void quantize(GgufType type, const float* from, std::int64_t count, std::byte* to);
void dequantize(GgufType type, const std::byte* from, std::int64_t count, float* to);

}  // namespace trireme
