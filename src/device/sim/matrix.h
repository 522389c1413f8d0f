// Matrices of cuBLASLt's products: column-major, of bf16, fp16, fp32 or fp8 numbers, in device
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <library_types.h>

namespace sim {

struct MatrixLayout {
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading_dimension = 0;  // elements between the starts of columns
  std::int32_t batch = 1;              // matrices of a batch
  std::int64_t batch_offset = 0;       // elements between their starts
};

constexpr bool is_fp8(cudaDataType type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}
constexpr std::size_t element_bytes(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : (is_fp8(type) ? 1 : 2);
}

inline float float_of_fp8(std::byte bits, __nv_fp8_interpretation_t format) {
  return __half2float(
      __ushort_as_half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), format).x));
}

// Calls work with a function that reads elements of this type: float(const std::byte*, index).
template <class Function>
void with_reader(cudaDataType type, Function work) {
  switch (type) {
    case CUDA_R_32F:
      return work([](const std::byte* from, std::int64_t at) {
        return reinterpret_cast<const float*>(from)[at];
      });
    case CUDA_R_16F:
      return work([](const std::byte* from, std::int64_t at) {
        return __half2float(reinterpret_cast<const __half*>(from)[at]);
      });
    case CUDA_R_8F_E4M3:
      return work(
          [](const std::byte* from, std::int64_t at) { return float_of_fp8(from[at], __NV_E4M3); });
    case CUDA_R_8F_E5M2:
      return work(
          [](const std::byte* from, std::int64_t at) { return float_of_fp8(from[at], __NV_E5M2); });
    default:
      return work([](const std::byte* from, std::int64_t at) {
        return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(from)[at]);
      });
  }
}

// Reads `count` consecutive elements from position `first` on.
void read_elements(const std::byte* from, cudaDataType type, std::int64_t first, std::int64_t count,
                   float* to);
// Writes them, rounded to the nearest. Not for fp8, which is a type of operands alone.
void write_elements(std::byte* to, cudaDataType type, std::int64_t first, std::int64_t count,
                    const float* from);

// A matrix as stripes of kWidth rows: element (row, l) is at row / kWidth * kWidth * columns +
// l * kWidth + row % kWidth. Missing rows of the last stripe are zero.
template <std::int64_t kWidth>
void pack_stripes(const std::byte* from, const MatrixLayout& layout, bool transposed,
                  std::vector<float>& to) {
  const std::int64_t rows = transposed ? layout.columns : layout.rows;
  const std::int64_t columns = transposed ? layout.rows : layout.columns;
  const std::int64_t row_step = transposed ? layout.leading_dimension : 1;
  const std::int64_t column_step = transposed ? 1 : layout.leading_dimension;
  to.assign(static_cast<std::size_t>((rows + kWidth - 1) / kWidth * kWidth * columns), 0.0F);
  with_reader(layout.type, [&](auto read) {
    for (std::int64_t stripe = 0; stripe < rows; stripe += kWidth) {
      float* target = to.data() + stripe * columns;
      const std::int64_t width = rows - stripe < kWidth ? rows - stripe : kWidth;
      for (std::int64_t l = 0; l < columns; ++l) {
        for (std::int64_t row = 0; row < width; ++row) {
          target[l * kWidth + row] = read(from, (stripe + row) * row_step + l * column_step);
        }
      }
    }
  });
}

}  // namespace sim
