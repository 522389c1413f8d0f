#include "src/nn/model_parts.h"

#include <algorithm>
#include <cmath>

#include "src/nn/model_size.h"
#include "src/nn/recomputed.h"

namespace trireme {
namespace {

Parameter normal_matrix(const std::string& name, const Place& place, double deviation) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = place;
  parameter.initializer = {Initializer::Kind::normal, static_cast<float>(deviation)};
  parameter.decays = true;
  return parameter;
}

Parameter constant_vector(const std::string& name, const Place& place, Initializer::Kind kind) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = place;
  parameter.initializer = {kind, 0};
  return parameter;
}

}  // namespace

Place ParameterDeclarer::common(const Shape& shape) const {
  Place place = Place::all(shape);
  place.primary = share_.rank == 0;
  return place;
}

namespace {

Parameter hidden_matrix(const std::string& name, const Place& place, double deviation) {
  Parameter parameter = normal_matrix(name, place, deviation);
  parameter.hidden = true;
  return parameter;
}

}  // namespace

ParameterId ParameterDeclarer::add(Parameter parameter) {
  parameter.frozen = config_.lora.is_on();
  parameter.trained = parameter.trained && !parameter.frozen;
  return store_.add(std::move(parameter));
}

ParameterId ParameterDeclarer::matrix(const std::string& name, const Place& place) {
  return add(hidden_matrix(name, place, config_.initializer_range));
}

ParameterId ParameterDeclarer::joined_matrix(const std::string& name, const Place& place) {
  Parameter parameter = hidden_matrix(name, place, config_.initializer_range);
  parameter.joined = true;
  return add(std::move(parameter));
}

ParameterId ParameterDeclarer::residual_matrix(const std::string& name, const Place& place) {
  const double branches = 2.0 * static_cast<double>(config_.layers);
  return add(hidden_matrix(name, place, config_.initializer_range / std::sqrt(branches)));
}

ParameterId ParameterDeclarer::ones(const std::string& name, std::int64_t elements) {
  return add(constant_vector(name, common({elements}), Initializer::Kind::ones));
}

ParameterId ParameterDeclarer::zeros(const std::string& name, std::int64_t elements) {
  return add(constant_vector(name, common({elements}), Initializer::Kind::zeros));
}

ParameterId ParameterDeclarer::zeros(const std::string& name, const Place& place) {
  return add(constant_vector(name, place, Initializer::Kind::zeros));
}

ParameterId ParameterDeclarer::joined_zeros(const std::string& name, const Place& place) {
  Parameter parameter = constant_vector(name, place, Initializer::Kind::zeros);
  parameter.joined = true;
  return add(std::move(parameter));
}

ParameterId ParameterDeclarer::common_matrix(const std::string& name, const Shape& shape) {
  return add(normal_matrix(name, common(shape), config_.initializer_range));
}

ParameterId ParameterDeclarer::vocabulary_matrix(const std::string& name, bool trained) {
  Parameter parameter =
      normal_matrix(name, Place::of_rows({config_.vocab, config_.hidden}, share_.vocabulary),
                    config_.initializer_range);
  parameter.trained = trained;
  return add(std::move(parameter));
}

std::vector<IndexRange> ParameterDeclarer::packed_columns() const {
  const std::int64_t keys = config_.attention_width();
  const std::int64_t values = keys + config_.kv_heads * config_.head_dim;
  const IndexRange kv = key_rows();
  return {query_rows(), {keys + kv.first, kv.count}, {values + kv.first, kv.count}};
}

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
                                              : llama_builder(config, slice, store)) {}

  ModelParts build() {
    check(0 <= slice_.first && slice_.first < slice_.end && slice_.end <= 2 * config_.layers,
          "a slice holds residual layers of the model");
    ModelParts parts;
    const bool split = config_.tie_embeddings && !config_.lora.is_on() &&
                       slice_.embeds() != slice_.has_head(config_);
    if (slice_.embeds()) {
      parts.embedding = embedding(declare_.vocabulary_matrix(family_->token_name(), !split));
      parts.embedding->position = family_->positions();
      parts.embedding_is_copy = split;
      parts.embedding_parameters = {0, store_.count()};
    }
    add_layers(parts);
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
    return embedding;
  }

  Head head(const std::optional<Embedding>& embedding) {
    Head head;
    head.norm = family_->final_norm();
    head.tied = config_.tie_embeddings;
    head.rows_at_once = logits_rows(config_);
    head.vocabulary = declare_.share().vocabulary;
    head.whole_vocabulary = config_.vocab;
    head.output.weight = head.tied && embedding
                             ? embedding->token
                             : declare_.vocabulary_matrix(
                                   head.tied ? family_->token_name() : "lm_head.weight", true);
    head.output.in = config_.hidden;
    head.output.out = head.vocabulary.count;
    head.output.transposed = true;
    return head;
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
};

}  // namespace

ModelParts build_parts(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store) {
  return Assembler(config, slice, store).build();
}

}  // namespace trireme
