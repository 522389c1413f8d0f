#include "src/train/run/model_fingerprint.h"

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/base/json_number.h"

namespace trireme {
namespace {

nlohmann::json model_fields(const ModelConfig& m) {
  return {{"family", family_name(m.family)},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_dim", m.head_dim},
          {"ffn", m.ffn},
          {"vocab", m.vocab},
          {"context", m.context},
          {"tie_embeddings", m.tie_embeddings},
          {"qkv_bias", m.qkv_bias},
          {"alibi", m.alibi},
          {"swiglu", m.swiglu},
          {"embedding_scale", m.embedding_scale},
          {"logit_scale", m.logit_scale},
          {"attention_scale", m.attention_scale},
          {"norm_epsilon", m.norm_epsilon},
          {"rope_theta", m.rope_theta},
          {"rope_factor", m.rope_scaling.factor},
          {"rope_low_frequency", m.rope_scaling.low_freq_factor},
          {"rope_high_frequency", m.rope_scaling.high_freq_factor},
          {"rope_original_context", m.rope_scaling.original_context},
          {"dropout", m.dropout},
          {"attention_dropout", m.attention_dropout},
          {"initializer_range", m.initializer_range}};
}

// Reads the fields "model.*" of a fingerprint. Throws DataError if one is missing or of another
// type.
class ModelFields {
 public:
  explicit ModelFields(const nlohmann::json& fingerprint) : fingerprint_(fingerprint) {}

  std::string text(const char* key) const { return text_field(present(key), name(key).c_str()); }
  bool flag(const char* key) const { return flag_field(present(key), name(key).c_str()); }
  std::int64_t count(const char* key) const { return count_field(present(key), name(key).c_str()); }
  double real(const char* key) const { return number_field(present(key), name(key).c_str()); }

 private:
  static std::string name(const char* key) { return std::string("model.") + key; }
  // Returns the fingerprint after checking that it contains the field.
  const nlohmann::json& present(const char* key) const {
    if (!fingerprint_.contains(name(key))) {
      throw DataError(fmt::format(
          "the checkpoint has no field '{}': it was not written by `trireme train`", name(key)));
    }
    return fingerprint_;
  }

  const nlohmann::json& fingerprint_;
};

std::vector<std::string> names_in(const nlohmann::json& fingerprint, const char* field) {
  std::vector<std::string> names;
  for (const nlohmann::json& name : array_field(fingerprint, field)) {
    if (!name.is_string()) {
      throw DataError(fmt::format("field '{}' does not hold names alone", field));
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

LoraConfig lora_from_fingerprint(const nlohmann::json& fingerprint) {
  LoraConfig lora;
  if (!fingerprint.contains("lora.products")) {
    return lora;
  }
  lora.products = names_in(fingerprint, "lora.products");
  lora.rank = count_field(fingerprint, "lora.rank", 1);
  lora.alpha = number_field(fingerprint, "lora.alpha");
  return lora;
}

// Reads fields that older versions did not write.
void read_gpt2_options(const nlohmann::json& fingerprint, ModelConfig& m) {
  if (!fingerprint.contains("model.alibi")) {
    return;
  }
  const ModelFields fields(fingerprint);
  m.alibi = fields.flag("alibi");
  m.swiglu = fields.flag("swiglu");
  m.embedding_scale = fields.real("embedding_scale");
  m.logit_scale = fields.real("logit_scale");
  m.attention_scale = fields.real("attention_scale");
}

}  // namespace

nlohmann::json model_fingerprint(const ModelConfig& model) {
  nlohmann::json fields;
  const nlohmann::json own = model_fields(model);
  for (const auto& [key, value] : own.items()) {
    fields["model." + key] = value;
  }
  return fields;
}

void put_fine_tuning(const ModelConfig& model, nlohmann::json& fields) {
  if (model.lora.is_on()) {
    fields["lora.products"] = model.lora.products;
    fields["lora.rank"] = model.lora.rank;
    fields["lora.alpha"] = model.lora.alpha;
  }
  if (model.frozen.is_on()) {
    fields["train.frozen"] = model.frozen.paths;
  }
}

ModelConfig model_from_fingerprint(const nlohmann::json& fingerprint) {
  const ModelFields fields(fingerprint);
  ModelConfig m;
  m.layers = fields.count("layers");
  m.hidden = fields.count("hidden");
  m.heads = fields.count("heads");
  m.kv_heads = fields.count("kv_heads");
  m.head_dim = fields.count("head_dim");
  m.ffn = fields.count("ffn");
  m.vocab = fields.count("vocab");
  m.context = fields.count("context");
  m.tie_embeddings = fields.flag("tie_embeddings");
  m.norm_epsilon = fields.real("norm_epsilon");
  m.rope_theta = fields.real("rope_theta");
  m.rope_scaling.factor = fields.real("rope_factor");
  m.rope_scaling.low_freq_factor = fields.real("rope_low_frequency");
  m.rope_scaling.high_freq_factor = fields.real("rope_high_frequency");
  m.rope_scaling.original_context = fields.count("rope_original_context");
  m.dropout = fields.real("dropout");
  if (fingerprint.contains("model.attention_dropout")) {  // missing in checkpoints of version 0.1
    m.attention_dropout = fields.real("attention_dropout");
  }
  if (fingerprint.contains("model.qkv_bias")) {  // missing in checkpoints of version 0.1
    m.qkv_bias = fields.flag("qkv_bias");
  }
  read_gpt2_options(fingerprint, m);
  m.initializer_range = fields.real("initializer_range");
  m.lora = lora_from_fingerprint(fingerprint);
  if (fingerprint.contains("train.frozen")) {
    m.frozen.paths = names_in(fingerprint, "train.frozen");
  }
  try {
    m.family = parse_family(fields.text("family"));
    m.validate();
  } catch (const ConfigError& error) {  // the values come from the checkpoint, not from the user
    throw DataError(error.what());
  }
  return m;
}

}  // namespace trireme
