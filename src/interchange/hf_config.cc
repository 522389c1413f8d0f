#include "src/interchange/hf_config.h"

#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/interchange/config_fields.h"
#include "src/interchange/hf_jais.h"
#include "src/interchange/hf_special_ids.h"

namespace trireme {
namespace {

using nlohmann::json;

// What transformers' configuration classes have where config.json has no such field. A field that
// is null means none.
struct ClassDefaults {
  std::int64_t context = 0;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t window = 0;    // 0: none
};
constexpr ClassDefaults kLlamaDefaults = {.context = 2048};
constexpr ClassDefaults kMistralDefaults = {.context = 131072, .kv_heads = 8, .window = 4096};
constexpr ClassDefaults kQwen2Defaults = {.context = 32768, .kv_heads = 32, .window = 4096};
constexpr std::int64_t kQwen2WindowLayers = 28;  // of max_window_layers

// Accepts what configurations of every model may have and does not change the logits, and refuses
// what does. auto_map names Python code that would have to run.
void read_common(ConfigFields& fields) {
  fields.ignore({"model_type",
                 "transformers_version",
                 "torch_dtype",
                 "dtype",
                 "use_cache",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "_name_or_path",
                 "name_or_path",
                 "output_hidden_states",
                 "output_attentions",
                 "return_dict",
                 "id2label",
                 "label2id",
                 "task_specific_params",
                 "problem_type",
                 "gradient_checkpointing",
                 "_attn_implementation",
                 "_attn_implementation_autoset",
                 "pretraining_tp",
                 "unsloth_version",
                 "tokenizer_class",
                 "prefix",
                 "finetuning_task"});
  for (const char* name : {"is_encoder_decoder", "is_decoder", "add_cross_attention",
                           "cross_attention_hidden_size", "tie_encoder_decoder"}) {
    fields.must_be(name, false);
  }
  fields.must_be("chunk_size_feed_forward", 0);
}

void check_architecture(ConfigFields& fields, std::string_view expected) {
  const json* const names = fields.find("architectures");
  if (names != nullptr && *names != json::array({expected})) {
    throw DataError(
        fmt::format("its architecture is {}: of this model_type, this program computes only {}",
                    printable(names->dump()), expected));
  }
}

ModelConfig gpt2_model(ConfigFields& fields) {
  ModelConfig m;
  m.family = Family::gpt2;
  m.vocab = fields.count("vocab_size", 50257);
  m.context = fields.count("n_positions", 1024);
  m.hidden = fields.count("n_embd", 768);
  m.layers = fields.count("n_layer", 12);
  m.heads = fields.count("n_head", 12);
  m.ffn = fields.count("n_inner", 0);
  m.norm_epsilon = fields.real("layer_norm_epsilon", 1e-5);
  m.initializer_range = fields.real("initializer_range", 0.02);
  m.dropout = fields.real("resid_pdrop", 0.1);
  m.attention_dropout = fields.real("attn_pdrop", 0.1);
  m.tie_embeddings = fields.flag("tie_word_embeddings", true);
  fields.must_be("n_ctx", m.context);
  fields.must_be("scale_attn_weights", true);
  fields.must_be("scale_attn_by_inverse_layer_idx", false);
  // The embedding's dropout is trained with the residual's; the attention's order of operations
  // changes roundings only; summaries are of models without a language head.
  fields.ignore({"embd_pdrop", "reorder_and_upcast_attn", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                 "summary_use_proj"});
  return m;
}

// Accepts all names of the approximation by tanh; plain "gelu" is another function.
void check_gelu(ConfigFields& fields) {
  const std::string activation = fields.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fields.must_be("activation_function", "gelu_new");
  }
}

ModelConfig jais_model(ConfigFields& fields) {
  check_architecture(fields, kJaisArchitecture);
  ModelConfig m = gpt2_model(fields);
  read_jais_options(fields, m);
  if (!m.swiglu) {
    check_gelu(fields);
  }
  return m;
}

RopeScaling llama3_scaling(ConfigFields& fields) {
  RopeScaling scaling;
  scaling.factor = fields.real("factor");
  scaling.low_freq_factor = fields.real("low_freq_factor");
  scaling.high_freq_factor = fields.real("high_freq_factor");
  scaling.original_context = fields.count("original_max_position_embeddings");
  if (!(scaling.factor >= 1)) {
    throw DataError(
        fmt::format("its option 'factor' of the rotary positions is {}: expected at "
                    "least 1",
                    scaling.factor));
  }
  return scaling;
}

// Reads an object that describes the rotary positions: "rope_scaling" of transformers before
// version 5, or "rope_parameters", which also holds the base.
// has_base: the model's configuration has a base of its own, which must be the same.
void read_rope(const json& object, const char* name, bool has_base, ModelConfig& m) {
  if (!object.is_object()) {
    throw DataError(fmt::format("field '{}' is not an object", name));
  }
  ConfigFields fields(object, fmt::format("{}.", name));
  const std::string older = fields.text("type", "");
  const std::string type = fields.text("rope_type", older.empty() ? "default" : older);
  if (!older.empty() && older != type) {
    throw DataError(fmt::format("its option '{0}.rope_type' is '{1}', and '{0}.type' is '{2}'",
                                name, printable(type), printable(older)));
  }
  const double base = fields.real("rope_theta", m.rope_theta);
  if (base != m.rope_theta && has_base) {
    throw DataError(fmt::format("its option 'rope_theta' is {}, and '{}.rope_theta' is {}",
                                m.rope_theta, name, base));
  }
  m.rope_theta = base;
  fields.must_be("partial_rotary_factor", 1.0);
  if (type == "llama3") {
    m.rope_scaling = llama3_scaling(fields);
  } else if (type != "default") {
    throw DataError(
        fmt::format("its option '{}.rope_type' is '{}': this program computes only "
                    "default and llama3",
                    name, printable(type)));
  }
  fields.finish();
}

// Throws if a window hides something from a layer. has_window: every layer has it, as in Mistral;
// otherwise, as in Qwen2, the layers from max_window_layers on, if use_sliding_window is true.
void check_window(ConfigFields& fields, const ModelConfig& model, bool has_window,
                  const ClassDefaults& defaults) {
  const bool is_used = fields.flag("use_sliding_window", false) || has_window;
  const bool is_default = !fields.has("sliding_window") && defaults.window > 0;
  const std::int64_t window =
      is_default ? defaults.window : fields.count("sliding_window", model.context);
  const std::int64_t first = fields.count("max_window_layers", kQwen2WindowLayers);
  if (is_used && window < model.context && (has_window || first < model.layers)) {
    throw DataError(fmt::format(
        "its option 'sliding_window' is {}{}, less than max_position_embeddings {}: this "
        "program computes attention over the whole context only",
        window, is_default ? " where it is missing" : "", model.context));
  }
  const json* const types = fields.find("layer_types");
  for (const json& type : types == nullptr ? json::array() : *types) {
    if (type != "full_attention") {
      throw DataError(
          fmt::format("its option 'layer_types' has {}: this program computes only "
                      "full_attention",
                      printable(type.dump())));
    }
  }
}

ModelConfig llama_model(ConfigFields& fields, bool has_window, const ClassDefaults& defaults) {
  ModelConfig m;
  m.family = Family::llama;
  m.vocab = fields.count("vocab_size");
  m.hidden = fields.count("hidden_size");
  m.ffn = fields.count("intermediate_size");
  m.layers = fields.count("num_hidden_layers");
  m.heads = fields.count("num_attention_heads");
  const bool has_class_heads = defaults.kv_heads > 0 && !fields.has("num_key_value_heads");
  m.kv_heads = has_class_heads ? defaults.kv_heads : fields.count("num_key_value_heads", m.heads);
  m.head_dim = fields.count("head_dim", 0);
  if (m.head_dim == 0 && fields.find("head_dim") != nullptr) {
    throw DataError("field 'head_dim' is 0: it is missing or null where hidden_size implies it");
  }
  m.context = fields.count("max_position_embeddings", defaults.context);
  m.norm_epsilon = fields.real("rms_norm_eps", 1e-6);
  m.initializer_range = fields.real("initializer_range", 0.02);
  m.attention_dropout = fields.real("attention_dropout", 0.0);
  m.tie_embeddings = fields.flag("tie_word_embeddings", false);
  m.rope_theta = fields.real("rope_theta", 10000.0);
  const json* const scaling = fields.find("rope_scaling");
  const json* const parameters = fields.find("rope_parameters");
  if (scaling != nullptr && parameters != nullptr && *scaling != *parameters) {
    throw DataError("its options 'rope_scaling' and 'rope_parameters' differ");
  }
  const bool has_base = fields.find("rope_theta") != nullptr;
  if (scaling != nullptr) {
    read_rope(*scaling, "rope_scaling", has_base, m);
  }
  if (parameters != nullptr) {
    read_rope(*parameters, "rope_parameters", has_base, m);
  }
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    fields.must_be("hidden_act", "silu");
  }
  fields.must_be("attention_bias", false);
  fields.must_be("mlp_bias", false);
  check_window(fields, m, has_window, defaults);
  return m;
}

// Qwen2 always has biases of queries, keys and values, and no field for them.
ModelConfig qwen2_model(ConfigFields& fields) {
  check_architecture(fields, "Qwen2ForCausalLM");
  ModelConfig m = llama_model(fields, false, kQwen2Defaults);
  fields.must_be("use_mrope", false);
  m.qkv_bias = true;
  return m;
}

ModelConfig model_of(const std::string& type, ConfigFields& fields) {
  if (type == "gpt2") {
    check_architecture(fields, "GPT2LMHeadModel");
    check_gelu(fields);
    return gpt2_model(fields);
  }
  if (type == "jais") {
    return jais_model(fields);
  }
  if (type == "llama") {
    check_architecture(fields, "LlamaForCausalLM");
    return llama_model(fields, true, kLlamaDefaults);
  }
  if (type == "mistral") {
    check_architecture(fields, "MistralForCausalLM");
    return llama_model(fields, true, kMistralDefaults);
  }
  if (type == "qwen2") {
    return qwen2_model(fields);
  }
  throw DataError(
      fmt::format("its model_type is '{}': this program computes only gpt2, jais, llama, mistral "
                  "and qwen2",
                  printable(type)));
}

json gpt2_fields(const ModelConfig& m) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", m.vocab},
          {"n_positions", m.context},
          {"n_ctx", m.context},
          {"n_embd", m.hidden},
          {"n_layer", m.layers},
          {"n_head", m.heads},
          {"n_inner", m.ffn == 4 * m.hidden ? json() : json(m.ffn)},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", m.dropout},
          {"embd_pdrop", m.dropout},
          {"attn_pdrop", m.attention_dropout},
          {"layer_norm_epsilon", m.norm_epsilon},
          {"initializer_range", m.initializer_range},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"tie_word_embeddings", m.tie_embeddings}};
}

json rope_fields(const RopeScaling& s) {
  return s.factor == 0 ? json()
                       : json({{"rope_type", "llama3"},
                               {"factor", s.factor},
                               {"low_freq_factor", s.low_freq_factor},
                               {"high_freq_factor", s.high_freq_factor},
                               {"original_max_position_embeddings", s.original_context}});
}

json llama_fields(const ModelConfig& m, const std::string& type) {
  const bool mistral = type == "mistral";
  const char* const architecture = m.qkv_bias ? "Qwen2ForCausalLM"
                                   : mistral  ? "MistralForCausalLM"
                                              : "LlamaForCausalLM";
  json fields = {{"architectures", {architecture}},
                 {"model_type", m.qkv_bias ? "qwen2"
                                : mistral  ? "mistral"
                                           : "llama"},
                 {"vocab_size", m.vocab},
                 {"hidden_size", m.hidden},
                 {"intermediate_size", m.ffn},
                 {"num_hidden_layers", m.layers},
                 {"num_attention_heads", m.heads},
                 {"num_key_value_heads", m.kv_heads},
                 {"head_dim", m.head_dim},
                 {"hidden_act", "silu"},
                 {"max_position_embeddings", m.context},
                 {"initializer_range", m.initializer_range},
                 {"rms_norm_eps", m.norm_epsilon},
                 {"rope_theta", m.rope_theta},
                 {"rope_scaling", rope_fields(m.rope_scaling)},
                 {"attention_dropout", m.attention_dropout},
                 {"tie_word_embeddings", m.tie_embeddings}};
  if (m.qkv_bias) {
    fields["use_sliding_window"] = false;
  } else if (mistral) {
    fields["sliding_window"] = nullptr;
  } else {
    fields["attention_bias"] = false;
    fields["mlp_bias"] = false;
  }
  return fields;
}

}  // namespace

HfConfig parse_hf_config(std::string_view text) {
  const json object = parse_json(text);
  if (!object.is_object()) {
    throw DataError("it is not a JSON object");
  }
  HfConfig config;
  config.model_type = text_field(object, "model_type");
  ConfigFields fields(object);
  read_common(fields);
  config.model = model_of(config.model_type, fields);
  fields.finish();
  config.special_ids = config_special_ids(object, config.model_type, config.model.vocab);
  try {
    config.model.complete();
    config.model.validate();
  } catch (const ConfigError& error) {  // the values come from the file, not from the user
    throw DataError(error.what());
  }
  return config;
}

std::string hf_config_text(const HfConfig& config, DType dtype) {
  const ModelConfig& m = config.model;
  json fields = m.family == Family::gpt2 ? gpt2_fields(m) : llama_fields(m, config.model_type);
  if (m.family == Family::gpt2 && (config.model_type == "jais" || !is_plain_gpt2(m))) {
    put_jais_options(m, fields);
  }
  // Without these fields, transformers would take the ids of the family's first model.
  fields["bos_token_id"] = nullptr;
  fields["eos_token_id"] = nullptr;
  fields.update(*config.special_ids);
  fields["torch_dtype"] = torch_name(dtype);
  fields["use_cache"] = true;
  fields["transformers_version"] = "4.40.0";
  return fields.dump(2) + "\n";
}

std::string_view torch_name(DType dtype) {
  return dtype == DType::bf16 ? "bfloat16" : dtype == DType::f16 ? "float16" : "float32";
}

}  // namespace trireme
