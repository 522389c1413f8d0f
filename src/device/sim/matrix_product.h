// One product of cuBLASLt: d = epilogue(alpha a b + beta c). All matrices are column-major. Sums
// and epilogues are in fp32; a sum's order does not depend on the shape.
#pragma once

#include <cublasLt.h>

#include "src/device/sim/matrix.h"

namespace sim {

struct MatrixProduct {
  MatrixLayout a;
  MatrixLayout b;
  MatrixLayout c;
  MatrixLayout d;
  bool transposes_a = false;
  bool transposes_b = false;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1;
  // Factors of a and b in device memory, f32 [1]; for operands of fp8, or null.
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
  float beta = 0;
  // Addresses of the device.
  const void* a_data = nullptr;
  const void* b_data = nullptr;
  const void* c_data = nullptr;
  void* d_data = nullptr;
  void* bias = nullptr;  // read, or written by the epilogues that compute a bias's gradient
  cudaDataType bias_type = CUDA_R_32F;
  void* aux = nullptr;  // [rows of d, columns of d]: what GELU was applied to
  cudaDataType aux_type = CUDA_R_32F;
  std::int64_t aux_leading_dimension = 0;
  bool splits_sums = false;     // adds parts of each sum in an order that the seed shuffles
  bool adds_halves = false;     // adds both halves of each sum
  std::int64_t lost_terms = 0;  // terms that are missing at the end of each sum

  std::int64_t k() const { return transposes_a ? a.rows : a.columns; }
  bool has(int part) const { return (epilogue & part) != 0; }
};

// The bits of an epilogue.
inline constexpr int kAddBias = 4;
inline constexpr int kApplyGelu = 32;
inline constexpr int kGeluGradient = 64;
inline constexpr int kUseAux = 128;
inline constexpr int kBiasGradient = 16;
static_assert(CUBLASLT_EPILOGUE_GELU_AUX_BIAS == (kAddBias | kApplyGelu | kUseAux));
static_assert(CUBLASLT_EPILOGUE_DGELU_BGRAD == (kGeluGradient | kUseAux | kBiasGradient));

// Returns what cuBLASLt would, before anything is computed.
cublasStatus_t check_product(const MatrixProduct& product);
// Returns one product of a batch.
MatrixProduct member_of_batch(const MatrixProduct& product, std::int64_t number);
// Ends the program if an operand does not lie within one allocation of the device.
void check_operands(const MatrixProduct& product);
void compute_product(const MatrixProduct& product);

}  // namespace sim
