// A model with frozen modules has the loss of the same model without them, and the same bits in the
// gradients of everything else; the gradients of frozen parameters are never computed.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/model_size.h"
#include "tests/nn/tiny_model.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig with_frozen(ModelConfig config, std::vector<std::string> paths) {
  config.frozen.paths = std::move(paths);
  config.complete();
  config.validate();
  return config;
}

TEST(FrozenModules, PathsStandForAllModulesBelow) {
  EXPECT_TRUE(stands_for("model.layers.3", "model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(stands_for("model.layers.*.mlp", "model.layers.3.mlp.up_proj"));
  EXPECT_TRUE(stands_for("model.layers.2-11", "model.layers.11.input_layernorm"));
  EXPECT_TRUE(stands_for("lm_head", "lm_head"));
  EXPECT_FALSE(stands_for("model.layers.2-11", "model.layers.12.input_layernorm"));
  EXPECT_FALSE(stands_for("model.layers.1", "model.layers.11.input_layernorm"));
  EXPECT_FALSE(stands_for("model.layers.3.mlp", "model.layers.3"));
  for (const char* path :
       {"", ".", "model.", "model..norm", "*.*.*.*.*.*", "model.layers.11-2", "model.layers.-3",
        "model.layers.3-", "model.layers.3-99999999999999999999"}) {
    EXPECT_FALSE(stands_for(path, "model.layers.3.mlp.up_proj")) << path;
  }
}

TEST(FrozenModules, HoldParametersOfTheirModules) {
  const FrozenModules frozen{{"transformer.h.0.attn"}};
  EXPECT_TRUE(frozen.holds("transformer.h.0.attn.c_attn.bias"));
  EXPECT_FALSE(frozen.holds("transformer.h.0.ln_1.weight"));
  EXPECT_FALSE(FrozenModules{{"lm_head.weight"}}.holds("lm_head.weight")) << "not a module";
}

struct FrozenConfig {
  std::string name;
  ModelConfig config;
};

class FrozenModelTest : public testing::TestWithParam<FrozenConfig> {};

TEST_P(FrozenModelTest, GradientsOfTheRestHaveTheSameBits) {
  const ModelConfig& config = GetParam().config;
  ModelConfig without = config;
  without.frozen = {};
  for (const std::string& table : kernel_tables()) {
    TinyModel part(config, DType::f32, kernels_named(table));
    TinyModel plain(without, DType::f32, kernels_named(table));
    const Tokens tokens(2, 11, config.vocab, 3);
    EXPECT_EQ(part.model.forward_backward(tokens.micro_batch, 1, part.run),
              plain.model.forward_backward(tokens.micro_batch, 1, plain.run));
    std::int64_t trained = 0;
    for (ParameterId id = 0; id < part.store.count(); ++id) {
      const Parameter& p = part.store[id];
      ASSERT_EQ(p.name, plain.store[id].name);
      const auto values = part.context.read<float>(part.sink.gradient(id));
      trained += p.trained ? p.elements() : 0;
      if (p.frozen) {
        EXPECT_THAT(values, Each(1e30F)) << p.name << " is never written";
      } else {
        EXPECT_EQ(values, plain.context.read<float>(plain.sink.gradient(id))) << p.name;
      }
    }
    EXPECT_EQ(trained, trained_parameter_count(config));
    EXPECT_LT(trained, parameter_count(config));
  }
}

ModelConfig untied(ModelConfig config) {
  config.tie_embeddings = false;
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    Models, FrozenModelTest,
    testing::Values(
        FrozenConfig{"gpt2_below", with_frozen(tiny_gpt2(), {"transformer.wte", "transformer.wpe",
                                                             "transformer.h.0"})},
        FrozenConfig{"jais_gate",
                     with_frozen(tiny_jais(), {"transformer.wte", "transformer.h.0.mlp.c_fc2"})},
        FrozenConfig{"gpt2_tied", with_frozen(tiny_gpt2(), {"transformer.wte"})},
        FrozenConfig{"gpt2_positions", with_frozen(tiny_gpt2(), {"transformer.wpe"})},
        FrozenConfig{"gpt2_but_head", with_frozen(untied(tiny_gpt2()), {"transformer"})},
        FrozenConfig{"llama_attention", with_frozen(tiny_llama(), {"model.layers.*.self_attn"})},
        FrozenConfig{"llama_norms",
                     with_frozen(tiny_llama(), {"model.layers.*.input_layernorm", "model.norm"})},
        FrozenConfig{"llama_mlp", with_frozen(tiny_llama(), {"model.layers.1.mlp.up_proj",
                                                             "model.layers.0.mlp.down_proj"})},
        FrozenConfig{"llama_above", with_frozen(untied(tiny_llama()),
                                                {"model.layers.1", "model.norm", "lm_head"})}),
    [](const auto& named) { return named.param.name; });

TEST(FrozenModel, NeedsFewerFlops) {
  const ModelConfig plain = untied(tiny_llama());
  const ModelConfig below = with_frozen(plain, {"model.embed_tokens", "model.layers.0"});
  const ModelConfig above = with_frozen(plain, {"model.layers.1"});
  EXPECT_LT(flops_per_token(below, 13), flops_per_token(above, 13));
  EXPECT_LT(flops_per_token(above, 13), flops_per_token(plain, 13));
  EXPECT_THAT(backward_work(below), ElementsAre(BackwardWork::none, BackwardWork::none,
                                                BackwardWork::all, BackwardWork::all));
  EXPECT_THAT(backward_work(above), ElementsAre(BackwardWork::all, BackwardWork::all,
                                                BackwardWork::inputs, BackwardWork::inputs));
}

TEST(FrozenModel, RefusesWhatCannotBe) {
  const auto message = [](const ModelConfig& config, std::vector<std::string> paths) {
    return message_of<ConfigError>([&] { with_frozen(config, std::move(paths)); });
  };
  EXPECT_THAT(message(tiny_llama(), {"model.layers.2"}),
              AllOf(HasSubstr("'model.layers.2'"), HasSubstr("model.layers.0 to 1"),
                    HasSubstr("mlp.up_proj")));
  EXPECT_THAT(message(tiny_gpt2(), {"model.norm"}), HasSubstr("transformer.ln_f"));
  EXPECT_THAT(message(tiny_llama(), {"model.layers.1.self_attn.q_proj"}),
              AllOf(HasSubstr("one product"), HasSubstr("model.layers.1")));
  EXPECT_THAT(message(tiny_gpt2(), {"transformer"}), HasSubstr("nothing would be trained"));
  EXPECT_THAT(message(tiny_gpt2(), std::vector<std::string>(65, "transformer.wte")),
              HasSubstr("at most 64"));
  EXPECT_THAT(message(tiny_llama(), {"model.layers.1-0"}), HasSubstr("no module"));
  ModelConfig beyond = with_frozen(tiny_llama(), {"model.norm", "model.layers.1-7.mlp"});
  EXPECT_THAT(message_of<ConfigError>([&] { beyond.check_frozen_ranges(); }),
              AllOf(HasSubstr("'model.layers.1-7.mlp'"), HasSubstr("model.layers is 2"),
                    HasSubstr("the last block is 1")));
  beyond.frozen.paths = {"model.layers.0-1.mlp", "model.norm"};
  beyond.check_frozen_ranges();
  ModelConfig adapted = tiny_gpt2();
  adapted.lora.products = {"all"};
  EXPECT_THAT(message(adapted, {"transformer.wte"}), HasSubstr("lora.products"));
}

}  // namespace
}  // namespace trireme
