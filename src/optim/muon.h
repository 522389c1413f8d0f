// Muon (Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024) updates one
// hidden matrix: five steps of a Newton-Schulz iteration make the momentum sum of SGD nearly
// orthogonal before it is applied.
//
//   g = gradient * gradient_scale; b = momentum * b + g; d = nesterov ? g + momentum * b : b
//   X = d / (|d| + 1e-7), with |d| the Frobenius norm; five times, for rows <= columns:
//     A = X X^T; X = 3.4445 X + (-4.7750 A + 2.0315 A A) X       (else A = X^T X, X on the left)
//   value = (1 - lr * weight_decay) * value - lr * 0.2 sqrt(max(rows, columns)) * X
//
// The factor 0.2 sqrt(max(rows, columns)) gives updates the size of AdamW's, so that one learning
// rate serves both (Liu et al., Muon is Scalable for LLM Training, 2025, section 2.2). All
// arithmetic is in f32; the result does not depend on the number of threads. Stateless; called by
// the optimizer's thread. Takes f64 [rows * columns / kSumBlock] of activation memory.
#pragma once

#include "src/compute/device_context.h"

namespace trireme {

struct Muon {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  View value;          // f32 [rows,columns]
  View buffer;         // f32 [rows,columns], b; zeros before the first step
  ConstView gradient;  // f32 [rows,columns]
  View workspace;      // f32 [muon_workspace(rows, columns)]
  float lr = 0;
  float momentum = 0.95F;
  bool nesterov = true;
  float weight_decay = 0;
  float gradient_scale = 1;  // from gradient clipping and loss scaling
  bool keep_zeros = false;   // whether X is set to 0 where the value is 0
};

// Returns the number of f32 elements in the workspace of one step.
std::int64_t muon_workspace(std::int64_t rows, std::int64_t columns);
void muon_step(const Muon& call, DeviceContext& context);

}  // namespace trireme
