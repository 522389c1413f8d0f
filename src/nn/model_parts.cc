#include "src/nn/model_parts.h"

#include <algorithm>
#include <cmath>

#include "src/nn/model_size.h"
#include "src/nn/recomputed_layers.h"

namespace trireme {
namespace {

// Builds the parts of a slice from those of the family.
class Assembler {
 public:
  Assembler(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
      : config_(config),
        slice_(slice),
        store_(store),
        declare_(config, slice, store),
        family_(config.family == Family::gpt2 ? gpt2_builder(config, slice, store)
                                              : llama_builder(config, slice, store)),
        token_name_(token_matrix(config.family)) {}

  ModelParts build() {
    check(0 <= slice_.first && slice_.first < slice_.end && slice_.end <= 2 * config_.layers,
          "a slice holds residual layers of the model");
    ModelParts parts;
    const bool split = config_.trains_tied_matrix() && slice_.embeds() != slice_.has_head(config_);
    if (slice_.embeds()) {
      parts.embedding = embedding(declare_.vocabulary_matrix(token_name_, !split));
      parts.embedding->position = family_->positions();
      parts.embedding_is_copy = split;
      parts.embedding_parameters = {0, store_.count()};
    }
    add_layers(parts);
    parts.still_layers = still_layers(parts);
    if (slice_.has_head(config_)) {
      const ParameterId first = store_.count();
      parts.head = head(parts.embedding);
      parts.head_parameters = {first, store_.count()};
      if (split) {
        parts.tied_gradient = embedding(parts.head->output.weight);
      }
    }
    return parts;
  }

 private:
  Embedding embedding(ParameterId token) const {
    Embedding embedding;
    embedding.token = token;
    embedding.vocabulary = declare_.share().vocabulary;
    embedding.channels = config_.hidden;
    embedding.dropout = static_cast<float>(config_.dropout);
    embedding.scale = static_cast<float>(config_.embedding_scale);
    return embedding;
  }

  Head head(const std::optional<Embedding>& embedding) {
    Head head;
    head.norm = family_->final_norm();
    head.logit_scale = static_cast<float>(config_.logit_scale);
    head.tied = config_.tie_embeddings;
    head.rows_at_once = logits_rows(config_);
    head.vocabulary = declare_.share().vocabulary;
    head.whole_vocabulary = config_.vocab;
    head.output.weight =
        head.tied && embedding
            ? embedding->token
            : declare_.vocabulary_matrix(head.tied ? token_name_ : "lm_head.weight", true);
    head.output.in = config_.hidden;
    head.output.out = head.vocabulary.count;
    head.output.transposed = true;
    return head;
  }

  bool is_frozen(const PartParameters& part) const {
    const auto& all = store_.all();
    return std::all_of(all.begin() + part.first, all.begin() + part.end,
                       [](const Parameter& parameter) { return parameter.frozen; });
  }

  std::size_t still_layers(const ModelParts& parts) const {
    if (!parts.embedding || !is_frozen(parts.embedding_parameters)) {
      return 0;
    }
    const auto& layers = parts.layer_parameters;
    const auto moving = std::find_if(layers.begin(), layers.end(),
                                     [&](const PartParameters& part) { return !is_frozen(part); });
    return static_cast<std::size_t>(moving - layers.begin());
  }

  std::unique_ptr<Layer> layer(std::int64_t number) {
    return number % 2 == 0 ? family_->attention_layer(number / 2) : family_->mlp_layer(number / 2);
  }

  // A recomputed transformer block is one layer of `parts`; a slice may begin or end in the middle
  // of a transformer block.
  void add_layers(ModelParts& parts) {
    const Recompute& recompute = slice_.recompute;
    for (std::int64_t number = slice_.first; number < slice_.end;) {
      const std::int64_t block = number / 2;
      const bool again = recompute.kind == Recompute::Kind::full && block % recompute.every == 0;
      const std::int64_t end = again ? std::min(2 * block + 2, slice_.end) : number + 1;
      const ParameterId first = store_.count();
      std::vector<std::unique_ptr<Layer>> together;
      for (; number < end; ++number) {
        together.push_back(layer(number));
      }
      parts.layers.push_back(again ? std::make_unique<RecomputedLayers>(std::move(together))
                                   : std::move(together.front()));
      parts.layer_parameters.push_back({first, store_.count()});
    }
  }

  const ModelConfig& config_;
  const ModelSlice& slice_;
  ParameterStore& store_;
  ParameterDeclarer declare_;
  std::unique_ptr<FamilyBuilder> family_;
  std::string token_name_;
};

}  // namespace

ModelParts build_parts(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store) {
  return Assembler(config, slice, store).build();
}

}  // namespace trireme
