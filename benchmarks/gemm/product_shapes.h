// Lists the matrix products that `trireme bench gemm` measures. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/device/dtype.h"
#include "src/nn/model_config.h"

namespace trireme {

// C [M,N] = A [M,K] B [K,N], where a transposed operand is stored the other way round.
struct ProductShape {
  std::string name;  // "square", "qkv", "mlp_up", ...
  std::string pass;  // "forward", "data_gradient", "weight_gradient"; "" for a square
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;

  // Returns 2 M N K: a multiplication and an addition count as one operation each.
  double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  // Returns the size of the three matrices.
  std::int64_t bytes(DType dtype) const;
  // Gradients of weights are fp32 in training; other results have the type of the operands.
  DType result(DType dtype) const { return pass == "weight_gradient" ? DType::f32 : dtype; }
};

ProductShape square_shape(std::int64_t size);

// Returns the products of one block and of the head in a training step on one rank: for each linear
// layer its forward pass and both gradients, with the layout of the weights that the model uses
// (src/nn/linear.h). tokens: of a micro-batch. Layers of equal shape appear once.
std::vector<ProductShape> model_shapes(const ModelConfig& model, std::int64_t tokens);

}  // namespace trireme
