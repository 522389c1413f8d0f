// Computes one matrix product through oneDNN. Primitives and their scratchpads belong to the
// calling thread, so that there are no locks and no large allocations after the first step. Only
// product.cc uses oneDNN.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/device/dtype.h"

namespace trireme::cpu {

// C[m,n] = op(A) op(B) (+ bias) (+ C). Leading dimensions count elements between stored rows.
struct Product {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  std::int64_t ldc = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  bool accumulate = false;  // for f32 C only
  DType type = DType::f32;  // of A, B and bias
  DType out = DType::f32;
  int threads = 1;
  friend bool operator==(const Product&, const Product&) = default;
};

// Returns whether oneDNN can multiply the type on this processor, or with the instruction set it is
// limited to.
bool has_product(DType type);
// Returns whether the product's bits are the same for any number of threads, if K is at most
// kTransposedK when A is transposed. This is true of oneDNN's blocked implementation (brgemm),
// which divides the sum of a transposed A among threads only beyond that; with AMX, it is true only
// of short sums. oneDNN's other implementations divide sums among threads at any size.
bool keeps_order(const Product& product);
inline constexpr std::int64_t kTransposedK = 1024;
// a, b and c point to the first elements. bias: [n], or null.
void run_product(const Product& product, const void* a, const void* b, const void* bias, void* c);

// Limits oneDNN to the instructions of "baseline", "avx2" or "avx512". The last includes
// AVX512-BF16, whose products add in the same order on every processor that has it, but not AMX,
// which adds in another order. Replaces ONEDNN_MAX_CPU_ISA. Must be called before the process's
// first product; later calls have no effect and return false.
bool limit_product_instructions(std::string_view isa);

}  // namespace trireme::cpu
