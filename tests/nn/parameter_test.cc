#include "src/nn/parameter.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/kernels/kernels.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

Parameter named(const std::string& name, const Shape& shape,
                Initializer::Kind kind = Initializer::Kind::zeros, bool joined = false) {
  Parameter parameter;
  parameter.name = name;
  parameter.place = Place::all(shape);
  parameter.initializer = {kind, 0.5F};
  parameter.joined = joined;
  return parameter;
}

TEST(ParameterStore, LaysParametersOutInOrderWithZeroGaps) {
  DeviceContext context(Device::cpu(), 1);
  ParameterStore store(context, DType::bf16);
  const ParameterId b = store.add(named("b", {3, 5}, Initializer::Kind::ones));
  const ParameterId joined = store.add(named("j", {2, 5}, Initializer::Kind::ones, true));
  const ParameterId a = store.add(named("a", {70}, Initializer::Kind::normal));
  store.allocate();
  EXPECT_EQ(store[b].offset, 0);
  EXPECT_EQ(store[joined].offset, 15);
  EXPECT_EQ(store[a].offset, kSumBlock);
  EXPECT_EQ(store.flat_elements(), 2 * kSumBlock);
  EXPECT_EQ(store.parameter_elements(), 95);
  EXPECT_THAT(store.ids_by_name(), testing::ElementsAre(a, b, joined));
  MasterWeights masters(store);
  masters.initialize(1);
  const auto* values = as<float>(masters.values(0));
  const auto* working_copies = as<bf16>(store.working_copies());
  for (std::int64_t i = 0; i < store.flat_elements(); ++i) {
    EXPECT_EQ(working_copies[i].bits, to_bf16(values[i]).bits);
    if (i < 25) {
      EXPECT_EQ(values[i], 1);
    } else if (i < kSumBlock || i >= kSumBlock + 70) {
      EXPECT_EQ(values[i], 0);
    }
  }
}

TEST(ParameterStore, InitialValuesDependOnSeedAndNameAlone) {
  const auto draw = [](std::uint64_t seed, const std::string& name, bool behind_another) {
    DeviceContext context(Device::cpu(), 1);
    ParameterStore store(context, DType::f32);
    if (behind_another) {
      store.add(named("x", {11}));
    }
    const ParameterId id = store.add(named(name, {10001}, Initializer::Kind::normal));
    store.allocate();
    MasterWeights masters(store);
    masters.initialize(seed);
    const auto* x = as<float>(masters.value(id));
    return std::vector<float>(x, x + 10001);
  };
  const std::vector<float> x = draw(1, "w", false);
  EXPECT_EQ(x, draw(1, "w", true));
  EXPECT_NE(x, draw(2, "w", false));
  EXPECT_NE(x, draw(1, "v", false));
  double sum = 0;
  double squares = 0;
  for (const float value : x) {
    sum += static_cast<double>(value);
    squares += std::pow(value, 2);
  }
  EXPECT_NEAR(sum / 10001, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / 10001), 0.5, 0.01);
}

TEST(ParameterStore, ModelsUseHuggingFacesNamesAndGpt2sInitialization) {
  TinyModel gpt2(tiny_gpt2(), DType::f32, kernels_named("reference"));
  TinyModel llama(tiny_llama(), DType::f32, kernels_named("reference"));
  const auto find = [](const ParameterStore& store, const std::string& name) {
    for (const Parameter& parameter : store.all()) {
      if (parameter.name == name) {
        return parameter;
      }
    }
    return Parameter{};
  };
  const Parameter c_attn = find(gpt2.store, "transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(c_attn.shape(), (Shape{15, 45}));
  EXPECT_TRUE(c_attn.decays);
  EXPECT_FLOAT_EQ(c_attn.initializer.deviation, 0.02F);
  const Parameter c_proj = find(gpt2.store, "transformer.h.0.mlp.c_proj.weight");
  EXPECT_FLOAT_EQ(c_proj.initializer.deviation, 0.01F);  // 0.02 / sqrt(2 x 2 layers)
  EXPECT_FALSE(find(gpt2.store, "transformer.ln_f.bias").decays);
  EXPECT_TRUE(find(gpt2.store, "lm_head.weight").name.empty());
  EXPECT_EQ(find(llama.store, "lm_head.weight").shape(), (Shape{37, 15}));
  EXPECT_EQ(find(llama.store, "model.layers.0.self_attn.k_proj.weight").shape(), (Shape{6, 15}));
}

}  // namespace
}  // namespace trireme
