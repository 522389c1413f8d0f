#include "src/plan/plan_model.h"

namespace trireme {

double PlanModel::block_parameters() const {
  const auto h = static_cast<double>(hidden);
  return h * static_cast<double>(qkv_width() + heads * head_dim) +
         (gated ? 3 : 2) * h * static_cast<double>(ffn);
}

double PlanModel::embedding_parameters() const {
  return static_cast<double>(vocab) * static_cast<double>(hidden);
}

double PlanModel::parameters() const {
  return static_cast<double>(layers) * block_parameters() + (tied ? 1 : 2) * embedding_parameters();
}

PlanModel plan_model(const ModelConfig& config, std::int64_t sequence) {
  return {.layers = config.layers,
          .hidden = config.hidden,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .ffn = config.ffn,
          .vocab = config.vocab,
          .sequence = sequence,
          .gated = config.has_gated_mlp(),
          .tied = config.tie_embeddings,
          .dropout = config.dropout > 0};
}

}  // namespace trireme
