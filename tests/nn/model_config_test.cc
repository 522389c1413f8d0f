#include "src/nn/model_config.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

using testing::HasSubstr;

std::string complaint(const ModelConfig& config) {
  try {
    config.validate();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelConfig, CompletesWhatIsLeftOut) {
  ModelConfig c;
  c.hidden = 768;
  c.heads = 12;
  c.complete();
  EXPECT_EQ(c.kv_heads, 12);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.ffn, 3072);
  EXPECT_EQ(c.attention_width(), 768);
  EXPECT_EQ(c.qkv_width(), 3 * 768);
}

TEST(ModelConfig, KeepsWhatIsGiven) {
  const ModelConfig before = tiny_llama();
  ModelConfig after = before;
  after.complete();
  EXPECT_EQ(before, after);
  EXPECT_EQ(complaint(after), "");
}

TEST(ModelConfig, BringsAdaptedProductsInOrder) {
  EXPECT_EQ(with_adapters(tiny_llama(), {"down_proj", "q_proj"}).lora.products,
            (std::vector<std::string>{"q_proj", "down_proj"}));
  EXPECT_EQ(with_adapters(tiny_gpt2(), {"all"}).lora.products, lora_products(tiny_gpt2()));
}

TEST(ModelConfig, RefusesOptionsOfTheOtherFamily) {
  EXPECT_EQ(complaint(tiny_jais()), "");
  ModelConfig c = tiny_llama();
  c.alibi = true;
  EXPECT_THAT(complaint(c), HasSubstr("model.alibi is true, but it is for the GPT-2 family"));
  c = tiny_llama();
  c.swiglu = true;
  EXPECT_THAT(complaint(c), HasSubstr("model.swiglu is true"));
  c = tiny_llama();
  c.logit_scale = 2;
  EXPECT_THAT(complaint(c), HasSubstr("model.logit_scale is 2, but it is for the GPT-2 family"));
  c = tiny_llama();
  c.attention_scale = 1;
  EXPECT_THAT(complaint(c), HasSubstr("for Llama it must be 0"));
  for (const double scale : {0.0, -1.0, 1e7, static_cast<double>(NAN)}) {
    c = tiny_jais();
    c.embedding_scale = scale;
    EXPECT_THAT(complaint(c), HasSubstr("model.embedding_scale is"));
    c = tiny_jais();
    c.attention_scale = scale == 0 ? -0.5 : scale;
    EXPECT_THAT(complaint(c), HasSubstr("model.attention_scale is"));
  }
}

TEST(ModelConfig, AdaptsBothMatricesBeforeSwiglu) {
  EXPECT_EQ(lora_products(tiny_jais()),
            (std::vector<std::string>{"c_attn", "attn.c_proj", "c_fc", "c_fc2", "mlp.c_proj"}));
}

TEST(ModelConfig, RefusesAdaptersThatCannotBe) {
  EXPECT_EQ(complaint(with_adapters(tiny_llama(), {"q_proj"})), "");
  EXPECT_THAT(complaint(with_adapters(tiny_llama(), {"c_attn"})),
              HasSubstr("'c_attn': a llama model has q_proj, k_proj"));
  EXPECT_THAT(complaint(with_adapters(tiny_gpt2(), {"c_fc", "c_fc"})),
              HasSubstr("'c_fc' more than once"));
  ModelConfig c = with_adapters(tiny_gpt2(), {"c_fc"});
  c.lora.rank = 16;
  EXPECT_THAT(complaint(c), HasSubstr("lora.rank is 16"));
  c.lora.rank = 4;
  c.lora.alpha = NAN;
  EXPECT_THAT(complaint(c), HasSubstr("lora.alpha"));
}

TEST(ModelConfig, RefusesImpossibleShapesWithTheFormula) {
  ModelConfig c = tiny_gpt2();
  c.head_dim = 4;
  EXPECT_THAT(complaint(c),
              HasSubstr("heads 3 x model.head_dim 4 = 12, which must equal model.hidden 15"));
  c = tiny_gpt2();
  c.kv_heads = 1;
  EXPECT_THAT(complaint(c), HasSubstr("kv_heads 1 differs from model.heads 3"));
  c = tiny_llama();
  c.kv_heads = 2;
  EXPECT_THAT(complaint(c), HasSubstr("heads 3 is not a multiple of model.kv_heads 2"));
  c = tiny_llama();
  c.head_dim = 5;
  EXPECT_THAT(complaint(c), HasSubstr("model.head_dim 5 is odd"));
  c = {};
  c.hidden = 10;
  c.heads = 3;
  c.complete();
  EXPECT_THAT(complaint(c), HasSubstr("hidden 10 is not a multiple of model.heads 3"));
}

TEST(ModelConfig, NamesAllProblemsAtOnce) {
  ModelConfig c = tiny_llama();
  c.layers = 0;
  c.vocab = -5;
  c.dropout = 1;
  c.norm_epsilon = 0;
  c.rope_scaling.factor = 0.5;
  const std::string text = complaint(c);
  for (const char* part : {"layers is 0", "vocab is -5", "dropout is 1", "norm_epsilon is 0",
                           "rope_scaling.factor is 0.5"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ModelConfig, RefusesHugeAndUnorderedNumbers) {
  ModelConfig c = tiny_llama();
  c.hidden = std::int64_t{1} << 62;
  EXPECT_THAT(complaint(c), HasSubstr("hidden is 4611686018427387904"));
  c = tiny_llama();
  c.dropout = std::nan("");
  EXPECT_THAT(complaint(c), HasSubstr("dropout is nan"));
}

TEST(ModelConfig, BlamesTheCauseAlone) {
  ModelConfig c = tiny_gpt2();
  c.heads = 4;  // of 15
  c.kv_heads = c.head_dim = c.ffn = 0;
  c.complete();
  EXPECT_EQ(complaint(c),
            "the model cannot be built: model.hidden 15 is not a multiple of model.heads 4, and "
            "model.head_dim is not given");
  c = tiny_gpt2();
  c.hidden = std::int64_t{1} << 62;
  c.kv_heads = c.head_dim = c.ffn = 0;
  c.complete();
  EXPECT_EQ(complaint(c),
            "the model cannot be built: model.hidden is 4611686018427387904: it must be from 1 "
            "to 16777216");
  c = tiny_llama();
  c.heads = 0;
  c.kv_heads = c.head_dim = 0;
  c.complete();
  EXPECT_EQ(complaint(c),
            "the model cannot be built: model.heads is 0: it must be from 1 to 65536");
}

// Tries the last allowed and the first refused value of each bound.
TEST(ModelConfig, HasBoundsThatBelongToItsRange) {
  struct Bound {
    const char* name;
    void (*set)(ModelConfig& config, double value);
    double allowed;
    double refused;
  };
  const std::vector<Bound> bounds = {
      {"norm_epsilon", [](ModelConfig& c, double v) { c.norm_epsilon = v; }, 0.999, 1},
      {"norm_epsilon", [](ModelConfig& c, double v) { c.norm_epsilon = v; }, 1e-12, 0},
      {"dropout", [](ModelConfig& c, double v) { c.dropout = v; }, 0.999, 1},
      {"dropout", [](ModelConfig& c, double v) { c.dropout = v; }, 0, -0.001},
      {"attention_dropout", [](ModelConfig& c, double v) { c.attention_dropout = v; }, 0.999, 1},
      {"attention_dropout", [](ModelConfig& c, double v) { c.attention_dropout = v; }, 0, -0.001},
      {"initializer_range", [](ModelConfig& c, double v) { c.initializer_range = v; }, 9.999, 10},
      {"initializer_range", [](ModelConfig& c, double v) { c.initializer_range = v; }, 0, -0.001},
      {"rope_theta", [](ModelConfig& c, double v) { c.rope_theta = v; }, 1.001, 1},
      {"rope_scaling.factor", [](ModelConfig& c, double v) { c.rope_scaling.factor = v; }, 1,
       0.999},
      {"layers", [](ModelConfig& c, double v) { c.layers = static_cast<std::int64_t>(v); }, 65536,
       65537},
      {"vocab", [](ModelConfig& c, double v) { c.vocab = static_cast<std::int64_t>(v); },
       2147483647, 2147483648},
      {"context", [](ModelConfig& c, double v) { c.context = static_cast<std::int64_t>(v); }, 1, 0},
      {"ffn", [](ModelConfig& c, double v) { c.ffn = static_cast<std::int64_t>(v); }, 16777216,
       16777217}};
  for (const Bound& bound : bounds) {
    ModelConfig config = tiny_llama();
    bound.set(config, bound.allowed);
    EXPECT_EQ(complaint(config), "") << bound.name << " " << bound.allowed;
    bound.set(config, bound.refused);
    EXPECT_THAT(complaint(config), HasSubstr(std::string("model.") + bound.name + " is "))
        << bound.refused;
  }
}

TEST(ModelConfig, StretchedFrequenciesNeedTwoFactorsInOrder) {
  ModelConfig config = tiny_llama();
  config.rope_scaling = {8, 1, 1, 8192};
  EXPECT_THAT(complaint(config), HasSubstr("0 < low_freq_factor 1 < high_freq_factor 1"));
  config.rope_scaling = {8, 0, 4, 8192};
  EXPECT_THAT(complaint(config), HasSubstr("0 < low_freq_factor 0 < high_freq_factor 4"));
  config.rope_scaling.factor = 0;
  EXPECT_EQ(complaint(config), "") << "off";
}

// The model has 2^50 parameters, whose bytes still fit into 64 bits.
TEST(ModelConfig, RefusesMoreParametersThanItCanCount) {
  ModelConfig config = tiny_llama();
  config.layers = 65536;
  config.hidden = config.ffn = 1 << 16;
  EXPECT_EQ(complaint(config), "");
  config.ffn = 1 << 17;
  EXPECT_THAT(complaint(config), HasSubstr("it has about 2e+15 parameters; at most 2^50"));
}

TEST(ModelConfig, KnowsItsFamilies) {
  EXPECT_EQ(parse_family("gpt2"), Family::gpt2);
  EXPECT_EQ(parse_family(family_name(Family::llama)), Family::llama);
  EXPECT_THROW(parse_family("gpt3"), ConfigError);
}

}  // namespace
}  // namespace trireme
