// One matrix product through oneDNN. Primitives and their scratchpads belong to the calling thread,
// so that nothing is locked and, after the first step, nothing large is allocated. The only file
// that knows oneDNN is product.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/device/dtype.h"

namespace trireme::cpu {

// C[m,n] = op(A) op(B) (+ bias) (+ C). Leading dimensions count elements of the stored rows.
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
  bool accumulate = false;  // f32 C only
  DType type = DType::f32;  // of A, B and bias
  DType out = DType::f32;
  int threads = 1;
  friend bool operator==(const Product&, const Product&) = default;
};

// Whether this processor (or the instruction set that oneDNN was limited to) multiplies the type.
bool has_product(DType type);
// Whether the product's bits are the same for any number of threads, as long as K is at most
// kTransposedK where A is transposed: true of oneDNN's blocked implementation (brgemm), which
// shares the sum of a transposed A among threads beyond that. Its others do so anywhere.
bool keeps_order(const Product& product);
inline constexpr std::int64_t kTransposedK = 1024;
// a, b, c point at the first element; bias: [n], or null.
void run_product(const Product& product, const void* a, const void* b, const void* bias, void* c);

// Limits oneDNN to the instructions of "baseline", "avx2" or "avx512". The last means AVX512-BF16:
// its products add in the same order on every processor that has it, while AMX adds in another one.
// Takes the place of ONEDNN_MAX_CPU_ISA. To be called before the first product of the process;
// later calls change nothing and return false.
bool limit_product_instructions(std::string_view isa);

}  // namespace trireme::cpu
