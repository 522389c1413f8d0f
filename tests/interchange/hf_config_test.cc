#include "src/interchange/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/nn/model_size.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json llama_config() {
  return {{"model_type", "llama"},     {"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 128},         {"hidden_size", 64},
          {"intermediate_size", 96},   {"num_hidden_layers", 2},
          {"num_attention_heads", 4},  {"num_key_value_heads", 2},
          {"rms_norm_eps", 1e-5},      {"max_position_embeddings", 256},
          {"rope_theta", 500000.0},    {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"}, {"bos_token_id", 1},
          {"eos_token_id", {2, 3}}};
}

json gpt2_config() {
  return {{"model_type", "gpt2"}, {"vocab_size", 128}, {"n_positions", 64}, {"n_ctx", 64},
          {"n_embd", 32},         {"n_layer", 2},      {"n_head", 4},       {"n_inner", nullptr}};
}

std::string refusal_of(json config, const json& changes) {
  config.merge_patch(changes);
  return message_of<DataError>([&] { parse_hf_config(config.dump()); });
}

TEST(HfConfig, ReadsLlama) {
  const HfConfig config = parse_hf_config(llama_config().dump());
  ModelConfig expected;
  expected.family = Family::llama;
  expected.vocab = 128;
  expected.hidden = 64;
  expected.ffn = 96;
  expected.layers = 2;
  expected.heads = 4;
  expected.kv_heads = 2;
  expected.head_dim = 16;
  expected.context = 256;
  expected.norm_epsilon = 1e-5;
  expected.rope_theta = 500000;
  expected.tie_embeddings = true;
  EXPECT_EQ(config.model, expected);
  EXPECT_EQ(*config.special_ids, json({{"bos_token_id", 1}, {"eos_token_id", {2, 3}}}));
}

TEST(HfConfig, ReadsGpt2) {
  const HfConfig config = parse_hf_config(gpt2_config().dump());
  EXPECT_EQ(config.model.family, Family::gpt2);
  EXPECT_EQ(config.model.ffn, 128);
  EXPECT_EQ(config.model.context, 64);
  EXPECT_TRUE(config.model.tie_embeddings);
}

// The configuration of Qwen2-0.5B; its window is not used.
json qwen2_config() {
  return {{"model_type", "qwen2"},       {"architectures", {"Qwen2ForCausalLM"}},
          {"vocab_size", 151936},        {"hidden_size", 896},
          {"intermediate_size", 4864},   {"num_hidden_layers", 24},
          {"num_attention_heads", 14},   {"num_key_value_heads", 2},
          {"rms_norm_eps", 1e-6},        {"max_position_embeddings", 131072},
          {"rope_theta", 1000000.0},     {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"},   {"attention_dropout", 0.0},
          {"max_window_layers", 24},     {"sliding_window", 32768},
          {"use_sliding_window", false}, {"use_mrope", false}};
}

TEST(HfConfig, ReadsQwen2) {
  const ModelConfig model = parse_hf_config(qwen2_config().dump()).model;
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_EQ(model.family, Family::llama);
  EXPECT_EQ(parameter_count(model), 494032768) << "published with the model";
  EXPECT_FALSE(parse_hf_config(llama_config().dump()).model.qkv_bias);
  const json window = {{"use_sliding_window", true}, {"max_window_layers", 23}};
  EXPECT_THAT(refusal_of(qwen2_config(), window), HasSubstr("'sliding_window' is 32768"));
  json unused = qwen2_config();
  unused["use_sliding_window"] = true;  // from layer 24 on, which it does not have
  EXPECT_EQ(parse_hf_config(unused.dump()).model, model);
  EXPECT_THAT(refusal_of(qwen2_config(), {{"use_mrope", true}}), HasSubstr("'use_mrope' is true"));
}

// A missing field has the value of the model's class in transformers; one that is null has none.
TEST(HfConfig, TakesTheDefaultsOfTheClass) {
  json mistral = llama_config();
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["num_attention_heads"] = 8;
  mistral.erase("head_dim");
  mistral["num_key_value_heads"] = nullptr;
  mistral["sliding_window"] = nullptr;
  mistral["max_position_embeddings"] = 8192;
  EXPECT_EQ(parse_hf_config(mistral.dump()).model.kv_heads, 8);
  json without = mistral;
  without.erase("sliding_window");
  EXPECT_THAT(refusal_of(without, json::object()),
              HasSubstr("'sliding_window' is 4096 where it is missing"));
  without["max_position_embeddings"] = 4096;
  EXPECT_EQ(parse_hf_config(without.dump()).model.context, 4096);
  mistral.erase("max_position_embeddings");
  EXPECT_EQ(parse_hf_config(mistral.dump()).model.context, 131072);
  json qwen2 = qwen2_config();
  qwen2["use_sliding_window"] = true;
  qwen2["max_window_layers"] = 0;
  qwen2.erase("sliding_window");
  EXPECT_THAT(refusal_of(qwen2, json::object()), HasSubstr("'sliding_window' is 4096"));
}

// transformers takes null for false.
TEST(HfConfig, RefusesANullThatTurnsAnOptionOff) {
  json gpt2 = gpt2_config();
  gpt2["scale_attn_weights"] = nullptr;
  EXPECT_THAT(refusal_of(gpt2, json::object()), HasSubstr("'scale_attn_weights' is null"));
  gpt2 = gpt2_config();
  gpt2["tie_word_embeddings"] = nullptr;
  EXPECT_FALSE(parse_hf_config(gpt2.dump()).model.tie_embeddings);
  json mistral = llama_config();
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralForCausalLM"};
  mistral["use_sliding_window"] = false;  // an option of Qwen2 only
  mistral["sliding_window"] = 100;
  EXPECT_THAT(refusal_of(mistral, json::object()), HasSubstr("'sliding_window' is 100"));
}

TEST(HfConfig, KnowsWhichModelsHaveNoSpecialIds) {
  const auto ids = [](json config, const json& changes) {
    config.erase("bos_token_id");
    config.erase("eos_token_id");
    config.update(changes);
    return *parse_hf_config(config.dump()).special_ids;
  };
  EXPECT_EQ(ids(llama_config(), json::object()), json({{"bos_token_id", 1}, {"eos_token_id", 2}}));
  EXPECT_EQ(ids(llama_config(), {{"eos_token_id", nullptr}}), json({{"bos_token_id", 1}}));
  EXPECT_EQ(ids(gpt2_config(), json::object()), json::object()) << "50256 is no token of it";
  EXPECT_EQ(ids(qwen2_config(), json::object()), json::object());
  json none = llama_config();
  none["bos_token_id"] = none["eos_token_id"] = nullptr;
  const json written = json::parse(hf_config_text(parse_hf_config(none.dump()), DType::f32));
  EXPECT_TRUE(written.at("bos_token_id").is_null());
  EXPECT_TRUE(written.at("eos_token_id").is_null());
}

// The names changed with version 5 of transformers.
TEST(HfConfig, ReadsBothFormsOfRotaryScaling) {
  const json scaling = {{"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  json old_form = llama_config();
  old_form["rope_scaling"] = scaling;
  old_form["rope_scaling"]["rope_type"] = "llama3";
  json new_form = llama_config();
  new_form.erase("rope_theta");
  new_form["rope_parameters"] = old_form["rope_scaling"];
  new_form["rope_parameters"]["rope_theta"] = 500000.0;
  const ModelConfig model = parse_hf_config(old_form.dump()).model;
  EXPECT_EQ(model.rope_scaling, (RopeScaling{8, 1, 4, 8192}));
  EXPECT_EQ(parse_hf_config(new_form.dump()).model, model);
}

TEST(HfConfig, WritesWhatItReads) {
  for (const std::string& name : kGoldenModels) {
    const HfConfig config = parse_hf_config(read_file(golden_model(name) / "config.json"));
    const HfConfig again = parse_hf_config(hf_config_text(config, DType::bf16));
    EXPECT_EQ(again.model, config.model) << name;
    EXPECT_EQ(again.model_type, config.model_type);
    EXPECT_EQ(*again.special_ids, *config.special_ids);
  }
}

TEST(HfConfig, RefusesOptionsThatChangeTheModelByName) {
  const auto llama = [](const json& changes) { return refusal_of(llama_config(), changes); };
  const auto gpt2 = [](const json& changes) { return refusal_of(gpt2_config(), changes); };
  EXPECT_THAT(llama({{"attention_bias", true}}), HasSubstr("'attention_bias' is true"));
  EXPECT_THAT(llama({{"mlp_bias", true}}), HasSubstr("'mlp_bias' is true"));
  EXPECT_THAT(llama({{"hidden_act", "gelu"}}), HasSubstr("'hidden_act' is \"gelu\""));
  EXPECT_THAT(llama({{"sliding_window", 100}}), HasSubstr("'sliding_window' is 100"));
  EXPECT_THAT(llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}),
              HasSubstr("rope_type' is 'linear'"));
  EXPECT_THAT(llama({{"rope_scaling", {{"rope_type", "llama3"}}}}), HasSubstr("factor"));
  EXPECT_THAT(llama({{"rope_scaling", {{"rope_type", "default"}, {"type", "linear"}}}}),
              HasSubstr("'rope_scaling.rope_type' is 'default', and 'rope_scaling.type'"));
  EXPECT_THAT(llama({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 77.0}}}}),
              HasSubstr("'rope_theta' is 500000, and 'rope_parameters.rope_theta' is 77"));
  EXPECT_THAT(llama({{"rope_parameters", {{"rope_type", "default"}}},
                     {"rope_scaling", {{"rope_type", "llama3"}}}}),
              HasSubstr("'rope_scaling' and 'rope_parameters' differ"));
  EXPECT_THAT(llama({{"quantization_config", {{"bits", 4}}}}), HasSubstr("quantization_config"));
  EXPECT_THAT(llama({{"auto_map", {{"AutoModel", "code.py"}}}}), HasSubstr("auto_map"));
  EXPECT_THAT(llama({{"layer_types", {"sliding_attention"}}}), HasSubstr("layer_types"));
  EXPECT_THAT(llama({{"model_type", "falcon"}}), HasSubstr("model_type is 'falcon'"));
  EXPECT_THAT(llama({{"architectures", {"LlamaForSequenceClassification"}}}),
              HasSubstr("LlamaForSequenceClassification"));
  EXPECT_THAT(gpt2({{"activation_function", "gelu"}}), HasSubstr("'activation_function'"));
  EXPECT_THAT(gpt2({{"scale_attn_by_inverse_layer_idx", true}}),
              HasSubstr("'scale_attn_by_inverse_layer_idx' is true"));
  EXPECT_THAT(gpt2({{"scale_attn_weights", false}}), HasSubstr("'scale_attn_weights' is false"));
  EXPECT_THAT(gpt2({{"n_ctx", 32}}), HasSubstr("'n_ctx' is 32"));
}

TEST(HfConfig, RefusesImpossibleValues) {
  EXPECT_THAT(refusal_of(llama_config(), {{"hidden_size", "64"}}), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal_of(llama_config(), {{"hidden_size", nullptr}}), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal_of(llama_config(), {{"num_key_value_heads", 3}}), HasSubstr("kv_heads 3"));
  EXPECT_THAT(refusal_of(llama_config(), {{"rope_theta", -1}}), HasSubstr("rope_theta"));
  EXPECT_THAT(refusal_of(gpt2_config(), {{"n_layer", 99999999999}}), HasSubstr("layers"));
  EXPECT_THAT(refusal_of(llama_config(), {{"head_dim", 0}}), HasSubstr("'head_dim' is 0"));
  EXPECT_THAT(refusal_of(gpt2_config(), {{"eos_token_id", -5}}), HasSubstr("'eos_token_id' is -5"));
  EXPECT_THAT(refusal_of(gpt2_config(), {{"bos_token_id", 1 << 30}}),
              HasSubstr("'bos_token_id' is 1073741824, but vocab_size is"));
  EXPECT_THAT(refusal_of(llama_config(), {{"eos_token_id", {1, 1 << 30}}}),
              HasSubstr("'eos_token_id' is 1073741824"));
  EXPECT_THAT(message_of<DataError>([] { parse_hf_config("[]"); }), HasSubstr("object"));
  EXPECT_THAT(message_of<DataError>([] { parse_hf_config("{"); }), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace trireme
