// The shape of a model and the software that trains it, as far as the planner needs them. Plain
// values. The letters of the formulas: T tokens of a micro-batch, S sequence, H hidden, F ffn,
// V vocabulary, L layers, A heads, G kv heads, D width of a head.
#pragma once

#include <cstdint>
#include <string>

#include "src/nn/model_config.h"

namespace trireme {

// Returns a count as a number to compute with.
constexpr double real(std::int64_t count) { return static_cast<double>(count); }

struct PlanModel {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t sequence = 0;
  bool gated = false;    // a product more in the MLP (SwiGLU)
  bool tied = false;     // the output matrix is the token embedding
  bool dropout = false;  // three kernels more per block

  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  // Parameters of the products of a block, and all of the model without norms and biases.
  double block_parameters() const;
  double embedding_parameters() const;
  double parameters() const;
};

PlanModel plan_model(const ModelConfig& config, std::int64_t sequence);

enum class PlanPrecision : std::uint8_t { bf16, fp8, fp32 };

// Software says what the program that trains does; the defaults are this program's.
struct Software {
  std::string name = "trireme";
  bool materializes_attention = false;  // stores the S x S matrix, as programs did before 2022
  double attention_share = 1;           // rate of fused attention divided by the best kernel's
  double kernel_traffic = 1;            // bytes of element-wise kernels divided by fused ones'
  double gradient_bytes = 4;            // per parameter, as reduced among replicas
  double accumulate_bytes = 12;         // moved per parameter and micro-batch to add up gradients
  bool overlaps_gradients = true;       // reduces while backward goes on
  bool overlaps_tensor = false;         // hides operations of tp behind products
  bool overlaps_transfers = true;       // between pipeline stages
  bool scatters_transfers = false;      // each tp rank sends a part, which the receivers gather
  bool sums_in_tree = false;            // keeps a gradient sum for each level of the tree
  bool balances_stages = true;          // gives the stage with the head fewer layers
};

}  // namespace trireme
