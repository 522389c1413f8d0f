// A model with adapters is the model whose weights are W + scale B A, and trains the adapters
// alone.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/model_size.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

using testing::HasSubstr;

struct AdaptedConfig {
  std::string name;
  ModelConfig config;
};

class AdaptedModelTest : public testing::TestWithParam<AdaptedConfig> {
 protected:
  const ModelConfig& config() const { return GetParam().config; }
};

// Finds the values of a parameter by name.
float* values_named(TinyModel& tiny, const std::string& name) {
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    if (tiny.store[id].name == name) {
      return as<float>(tiny.masters->value(id));
    }
  }
  return nullptr;
}

// Adds scale B A to the weights of a model without adapters.
void merge(TinyModel& adapted, TinyModel& plain) {
  const auto rank = static_cast<std::size_t>(adapted.model.config().lora.rank);
  const bool transposed = adapted.model.config().family == Family::llama;
  for (const Parameter& p : plain.store.all()) {
    const std::string module = p.name.substr(0, p.name.rfind('.'));
    const float* const a = values_named(adapted, module + ".lora_A.weight");
    const float* const b = values_named(adapted, module + ".lora_B.weight");
    if (a == nullptr || !p.name.ends_with(".weight")) {
      continue;
    }
    const auto rows = static_cast<std::size_t>(p.shape()[0]);
    const auto columns = static_cast<std::size_t>(p.shape()[1]);
    float* const w = values_named(plain, p.name);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t k = 0; k < rank; ++k) {
          const float product = transposed ? b[i * rank + k] * a[k * columns + j]
                                           : a[k * rows + i] * b[k * columns + j];
          w[i * columns + j] += static_cast<float>(adapted.model.config().lora.scale()) * product;
        }
      }
    }
  }
}

TEST_P(AdaptedModelTest, HasTheLossOfTheMergedModel) {
  ModelConfig without = config();
  without.lora = {};
  for (const std::string& table : kernel_tables()) {
    TinyModel adapted(config(), DType::f32, kernels_named(table));
    TinyModel plain(without, DType::f32, kernels_named(table));
    const Tokens tokens(2, 11, config().vocab, 3);
    const double before = plain.model.evaluate(tokens.micro_batch, plain.run);
    merge(adapted, plain);
    const double merged = plain.model.evaluate(tokens.micro_batch, plain.run);
    EXPECT_GT(std::abs(merged - before), 1e-2) << "the adapters change something";
    EXPECT_NEAR(adapted.model.evaluate(tokens.micro_batch, adapted.run), merged, 1e-4) << table;
  }
}

// Gradients of A and B follow from that of the merged weight: dB = scale dW A^T, dA = scale B^T dW.
TEST_P(AdaptedModelTest, HasTheGradientsThatFollowFromThoseOfTheMergedModel) {
  ModelConfig without = config();
  without.lora = {};
  TinyModel adapted(config(), DType::f32, kernels_named("reference"));
  TinyModel plain(without, DType::f32, kernels_named("reference"));
  merge(adapted, plain);
  const Tokens tokens(2, 11, config().vocab, 3);
  adapted.model.forward_backward(tokens.micro_batch, 1, adapted.run);
  plain.model.forward_backward(tokens.micro_batch, 1, plain.run);
  const auto rank = static_cast<std::size_t>(config().lora.rank);
  const bool transposed = config().family == Family::llama;
  std::int64_t trained = 0;
  for (ParameterId id = 0; id < adapted.store.count(); ++id) {
    const Parameter& p = adapted.store[id];
    trained += p.trained ? p.elements() : 0;
    if (!p.name.ends_with(".lora_B.weight")) {
      continue;
    }
    const std::string module = p.name.substr(0, p.name.size() - 14);
    const auto weight =
        std::find_if(plain.store.all().begin(), plain.store.all().end(),
                     [&](const Parameter& each) { return each.name == module + ".weight"; });
    const auto columns = static_cast<std::size_t>(weight->shape()[1]);
    const auto rows = static_cast<std::size_t>(weight->shape()[0]);
    const float* const dw = as<float>(
        plain.sink.gradient(static_cast<ParameterId>(weight - plain.store.all().begin())));
    const float* const a = values_named(adapted, module + ".lora_A.weight");
    const float* const db = as<float>(adapted.sink.gradient(id));
    const std::size_t out = transposed ? rows : columns;
    const std::size_t in = transposed ? columns : rows;
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t k = 0; k < rank; ++k) {
        double expected = 0;
        for (std::size_t i = 0; i < in; ++i) {
          expected += static_cast<double>(dw[transposed ? o * columns + i : i * columns + o] *
                                          a[k * in + i]);
        }
        EXPECT_NEAR(db[transposed ? o * rank + k : k * out + o], config().lora.scale() * expected,
                    1e-4)
            << p.name;
      }
    }
  }
  EXPECT_EQ(trained, trained_parameter_count(config()));
}

INSTANTIATE_TEST_SUITE_P(
    Models, AdaptedModelTest,
    testing::Values(AdaptedConfig{"gpt2", with_adapters(tiny_gpt2(), {"all"})},
                    AdaptedConfig{"gpt2_one", with_adapters(tiny_gpt2(), {"attn.c_proj"})},
                    AdaptedConfig{"jais", with_adapters(tiny_jais(), {"all"})},
                    AdaptedConfig{"llama", with_adapters(tiny_llama(), {"all"})},
                    AdaptedConfig{"llama_two", with_adapters(tiny_llama(), {"q_proj", "v_proj"})}),
    [](const auto& named) { return named.param.name; });

TEST(AdaptedModel, NeedsFewerFlops) {
  const ModelConfig plain = tiny_llama();
  const ModelConfig adapted = with_adapters(plain, {"q_proj"});
  EXPECT_EQ(parameter_count(adapted), parameter_count(plain));
  EXPECT_LT(flops_per_token(adapted, 13), 0.75 * flops_per_token(plain, 13));
  EXPECT_EQ(trained_parameter_count(adapted), 2 * 3 * (15 + 18));
}

}  // namespace
}  // namespace trireme
