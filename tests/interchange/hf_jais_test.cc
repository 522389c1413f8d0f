// Configurations and files of Jais: what is read, what is refused by name, and what exports say.
#include "src/interchange/hf_jais.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/safetensors.h"
#include "src/base/error.h"
#include "src/interchange/hf_config.h"
#include "src/interchange/hf_model.h"
#include "src/nn/model_size.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// The configuration of the first release of 13 billion parameters.
json jais_config() {
  return {{"model_type", "jais"},
          {"architectures", {"JAISLMHeadModel"}},
          {"activation_function", "swiglu"},
          {"attn_pdrop", 0.0},
          {"auto_map",
           {{"AutoConfig", "configuration_jais.JAISConfig"},
            {"AutoModelForCausalLM", "core42/jais-13b--modeling_jais.JAISLMHeadModel"}}},
          {"bos_token_id", 0},
          {"embeddings_scale", 14.6},
          {"eos_token_id", 0},
          {"layer_norm_epsilon", 1e-5},
          {"n_embd", 5120},
          {"n_head", 40},
          {"n_inner", 13653},
          {"n_layer", 40},
          {"n_positions", 2048},
          {"position_embedding_type", "alibi"},
          {"reorder_and_upcast_attn", false},
          {"resid_pdrop", 0.0},
          {"scale_attn_by_inverse_layer_idx", false},
          {"scale_attn_weights", true},
          {"scale_qk_dot_by_d", true},
          {"torch_dtype", "float32"},
          {"vocab_size", 84992},
          {"width_scale", 0.111}};
}

ModelConfig model_of(const json& changes) {
  json config = jais_config();
  config.merge_patch(changes);
  return parse_hf_config(config.dump()).model;
}

std::string refusal_of(const json& changes) {
  return message_of<DataError>([&] { (void)model_of(changes); });
}

TEST(HfJais, ReadsThePublishedConfiguration) {
  const ModelConfig model = model_of(json::object());
  EXPECT_EQ(model.family, Family::gpt2);
  EXPECT_TRUE(model.alibi && model.swiglu && model.tie_embeddings);
  EXPECT_EQ(model.embedding_scale, 14.6);
  EXPECT_EQ(model.logit_scale, 0.111);
  EXPECT_EQ(model.attention_scale, 1.0 / 128);
  EXPECT_EQ(model.ffn, 13653);
  // 40 blocks of two norms, three attention matrices and an output, three of the MLP, with biases;
  // the embedding; and the last norm.
  const std::int64_t block =
      4 * 5120 + 5121 * 3 * 5120 + 5121 * 5120 + 5121 * 2 * 13653 + 13654 * 5120;
  EXPECT_EQ(parameter_count(model), 40 * block + 84992 * 5120 + 2 * 5120);
}

TEST(HfJais, NewAndOldNamesMeanTheSame) {
  const json newer = {{"embeddings_scale", nullptr},   {"mup_embeddings_scale", 14.6},
                      {"width_scale", nullptr},        {"mup_output_alpha", 0.222},
                      {"mup_width_scale", 0.5},        {"scale_qk_dot_by_d", nullptr},
                      {"mup_scale_qk_dot_by_d", true}, {"alibi_scaling", nullptr}};
  EXPECT_EQ(model_of(newer), model_of(json::object()));
  EXPECT_EQ(model_of({{"mup_embeddings_scale", 14.6}}), model_of(json::object()));
  EXPECT_THAT(
      refusal_of({{"mup_embeddings_scale", 10}}),
      HasSubstr("'mup_embeddings_scale' and 'embeddings_scale', an older name of it, differ"));
  EXPECT_THAT(refusal_of({{"mup_width_scale", 0.5}}),
              HasSubstr("'width_scale' is 0.111, but mup_output_alpha x mup_width_scale is 0.5"));
  EXPECT_THAT(refusal_of({{"mup_scale_qk_dot_by_d", false}}), HasSubstr("differ"));
}

TEST(HfJais, DefaultsAreThoseOfTheClass) {
  const json none = {{"embeddings_scale", nullptr},    {"width_scale", nullptr},
                     {"scale_qk_dot_by_d", nullptr},   {"position_embedding_type", nullptr},
                     {"activation_function", nullptr}, {"n_inner", nullptr}};
  const ModelConfig model = model_of(none);
  EXPECT_TRUE(is_plain_gpt2(model));
  EXPECT_EQ(model.ffn, 4 * 5120);
}

TEST(HfJais, RefusesWhatItDoesNotCompute) {
  EXPECT_THAT(refusal_of({{"position_embedding_type", "rotary"}}),
              HasSubstr("'position_embedding_type' is 'rotary': this program computes only alibi "
                        "and learned"));
  EXPECT_THAT(refusal_of({{"activation_function", "gelu"}}),
              HasSubstr("'activation_function' is \"gelu\""));
  EXPECT_THAT(refusal_of({{"alibi_scaling", {{"type", "linear"}, {"factor", 2}}}}),
              HasSubstr("'alibi_scaling'"));
  EXPECT_THAT(refusal_of({{"auto_map", {{"AutoModel", "modeling_mine.JAISModel"}}}}),
              HasSubstr("names the code modeling_mine.JAISModel"));
  EXPECT_THAT(refusal_of({{"auto_map", {{"AutoModel", json::array({1})}}}}),
              HasSubstr("names the code [1]"));
  EXPECT_THAT(refusal_of({{"auto_map", "modeling_jais.JAISModel"}}), HasSubstr("'auto_map'"));
  EXPECT_THAT(refusal_of({{"mup_new_scale", 2}}), HasSubstr("unknown options"));
  EXPECT_THAT(refusal_of({{"scale_attn_weights", false}}), HasSubstr("'scale_attn_weights'"));
  EXPECT_THAT(refusal_of({{"architectures", {"GPT2LMHeadModel"}}}), HasSubstr("architecture"));
  EXPECT_THAT(refusal_of({{"embeddings_scale", "14.6"}}), HasSubstr("not a finite number"));
  EXPECT_THAT(refusal_of({{"embeddings_scale", 0}}), HasSubstr("model.embedding_scale is 0"));
  EXPECT_THAT(refusal_of({{"width_scale", -1}}), HasSubstr("model.logit_scale is -1"));
  EXPECT_THAT(refusal_of({{"width_scale", 1e300}}), HasSubstr("model.logit_scale is 1e+300"));
  EXPECT_THAT(refusal_of({{"n_embd", 0}}), HasSubstr("model.hidden is 0"));
  EXPECT_THAT(refusal_of({{"n_head", 0}}), HasSubstr("model.heads is 0"));
}

TEST(HfJais, GoldenConfigurationsSurviveTheRoundTrip) {
  HfConfig config = parse_hf_config(jais_config().dump());
  const HfConfig again = parse_hf_config(hf_config_text(config, DType::bf16));
  EXPECT_EQ(again.model_type, "jais");
  EXPECT_EQ(again.model, config.model);
  config.model_type = "";  // as of a run that began with new weights
  EXPECT_EQ(parse_hf_config(hf_config_text(config, DType::bf16)).model, config.model);
  config.model.attention_scale = 0.3;
  EXPECT_THAT(message_of<ConfigError>([&] { check_hf_scales(config.model); }),
              HasSubstr("model.attention_scale is 0.3"));
}

// Writes the golden model again, with other slopes.
void change_slopes(const fs::path& folder, const std::vector<std::int64_t>& shape, float first) {
  const HfFiles files(folder);
  std::vector<SafetensorsEntry> entries;
  std::string data;
  for (const auto& [name, tensor] : files.tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
    files.read(name, 0, tensor.elements(), values.data());
    std::vector<std::int64_t> extents = tensor.shape;
    if (name == kJaisSlopes) {
      extents = shape;
      values.resize(static_cast<std::size_t>(shape[0]), 0.25F);
      values[0] = first;
    }
    const auto begin = std::ssize(data);
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    entries.push_back({name, DType::f32, extents, begin, std::ssize(data)});
  }
  write_file_durably(folder / "model.safetensors",
                     encode_safetensors_header({}, entries, 8) + data);
}

TEST(HfJais, RefusesSlopesThatAreNotAlibis) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("jais", source);
  change_slopes(source, {3, 1}, 0.0625F);
  EXPECT_NO_THROW(HfModel{source});
  change_slopes(source, {3, 1}, 0.0630F);
  EXPECT_THAT(message_of<DataError>([&] { HfModel{source}; }),
              HasSubstr("the slope of head 0 is 0.063"));
  change_slopes(source, {4, 1}, 0.0625F);
  EXPECT_THAT(message_of<DataError>([&] { HfModel{source}; }), HasSubstr("there are 3 heads"));
}

TEST(HfJais, RefusesSlopesOfAModelWithLearnedPositions) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("jais", source);
  edit_config(source, {{"position_embedding_type", "learned"}, {"n_positions", 1}});
  EXPECT_THAT(message_of<DataError>([&] { HfModel{source}; }), HasSubstr("transformer.wpe.weight"));
}

}  // namespace
}  // namespace trireme
