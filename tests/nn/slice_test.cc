// A model that is cut into slices, postpones weight gradients or recomputes activations gives the
// same bits as the whole model.
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

struct Plan {
  std::vector<std::int64_t> cuts;  // residual layers where slices end
  Recompute recompute;
  bool later = false;
};

struct Outcome {
  double loss = 0;
  std::map<std::string, std::vector<float>> gradients;
};

// Runs one micro-batch through all slices on one rank.
Outcome run_slices(const ModelConfig& config, DType compute, const Kernels& kernels,
                   const Plan& plan) {
  std::vector<std::unique_ptr<TinyModel>> slices;
  std::int64_t first = 0;
  for (const std::int64_t end : plan.cuts) {
    ModelSlice slice = ModelSlice::whole(config);
    slice.first = std::exchange(first, end);
    slice.end = end;
    slice.recompute = plan.recompute;
    slices.push_back(std::make_unique<TinyModel>(config, slice, compute, kernels));
  }
  const Tokens tokens(3, 13, config.vocab, 1);
  std::vector<Saved> saved(slices.size());
  Tensor stream;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    slices[i]->run.training = true;
    slices[i]->run.first_sample = 6;
    stream =
        slices[i]->model.forward(tokens.micro_batch, std::move(stream), saved[i], slices[i]->run);
  }
  EXPECT_TRUE(stream.empty());
  Outcome outcome;
  Tensor d;
  for (std::size_t i = slices.size(); i-- > 0;) {
    Run& run = slices[i]->run;
    WeightGradients later;
    run.later = plan.later ? &later : nullptr;
    d = slices[i]->model.backward(tokens.micro_batch, std::move(d), 0.125F, saved[i], run);
    EXPECT_EQ(later.empty(), !plan.later);
    run.later = nullptr;
    for (const auto& work : later) {
      work(run);
    }
  }
  outcome.loss = *as<double>(slices.back()->loss.view());
  if (slices.back()->model.is_tied_last()) {
    EXPECT_TRUE(slices.front()->model.is_tied_first());
    slices.back()->model.add_tied_gradient(tokens.micro_batch, d, slices.back()->run);
  }
  for (const auto& slice : slices) {
    for (ParameterId id = 0; id < slice->store.count(); ++id) {
      if (slice->store[id].trained) {
        const auto* g = as<float>(slice->sink.gradient(id));
        const bool fresh = outcome.gradients
                               .emplace(slice->store[id].name,
                                        std::vector<float>(g, g + slice->store[id].elements()))
                               .second;
        EXPECT_TRUE(fresh) << slice->store[id].name;
      }
    }
  }
  return outcome;
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.loss, b.loss);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (const auto& [name, x] : a.gradients) {
    const auto y = b.gradients.find(name);
    ASSERT_NE(y, b.gradients.end()) << name;
    ASSERT_EQ(x.size(), y->second.size());
    EXPECT_EQ(std::memcmp(x.data(), y->second.data(), x.size() * sizeof(float)), 0) << name;
  }
}

struct Named {
  std::string name;
  ModelConfig config;
};

ModelConfig with(ModelConfig config, bool tied, double dropout) {
  config.layers = 3;
  config.tie_embeddings = tied;
  config.dropout = dropout;
  return config;
}

ModelConfig with_bias(ModelConfig config) {
  config.qkv_bias = true;
  return config;
}

class SliceTest : public testing::TestWithParam<Named> {
 protected:
  void expect_bits_of_whole(const Plan& plan) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      for (const std::string& table : kernel_tables()) {
        SCOPED_TRACE(table);
        const ModelConfig& config = GetParam().config;
        const Kernels& kernels = kernels_named(table);
        expect_same_bits(run_slices(config, compute, kernels, {{2 * config.layers}, {}, false}),
                         run_slices(config, compute, kernels, plan));
      }
    }
  }
};

TEST_P(SliceTest, PipelineStagesChangeNoBit) {
  expect_bits_of_whole({{2, 6}, {}, false});
  expect_bits_of_whole({{1, 3, 6}, {}, false});
  expect_bits_of_whole({{1, 2, 3, 4, 5, 6}, {}, false});
}

TEST_P(SliceTest, WeightGradientsThatComeLaterAreTheSame) {
  expect_bits_of_whole({{6}, {}, true});
  expect_bits_of_whole({{3, 6}, {}, true});
}

TEST_P(SliceTest, RecomputingChangesNoBit) {
  const Recompute selective{Recompute::Kind::selective, 1};
  const Recompute full{Recompute::Kind::full, 1};
  const Recompute every_second{Recompute::Kind::full, 2};
  for (const Recompute& recompute : {selective, full, every_second}) {
    expect_bits_of_whole({{6}, recompute, false});
    expect_bits_of_whole({{3, 6}, recompute, true});
  }
}

// Returns the peak memory of a pass without the parameters.
std::int64_t peak_bytes(const ModelConfig& config, const Recompute& recompute) {
  ModelSlice slice = ModelSlice::whole(config);
  slice.recompute = recompute;
  TinyModel tiny(config, slice, DType::f32, kernels_named("reference"));
  const Tokens tokens(3, 13, config.vocab, 1);
  tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
  return tiny.context.activations().peak_bytes();
}

TEST_P(SliceTest, RecomputingTakesLessMemory) {
  ModelConfig config = GetParam().config;
  config.layers = 8;
  const std::int64_t none = peak_bytes(config, {});
  const std::int64_t selective = peak_bytes(config, {Recompute::Kind::selective, 1});
  const std::int64_t half = peak_bytes(config, {Recompute::Kind::full, 2});
  const std::int64_t full = peak_bytes(config, {Recompute::Kind::full, 1});
  EXPECT_LT(selective, none);
  EXPECT_LT(half, none);
  EXPECT_LT(full, half);
  EXPECT_LT(full, selective);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SliceTest,
    testing::Values(Named{"gpt2", with(tiny_gpt2(), true, 0)},
                    Named{"gpt2_untied_dropout", with(tiny_gpt2(), false, 0.3)},
                    Named{"gpt2_lora", with_adapters(with(tiny_gpt2(), true, 0.3), {"all"})},
                    Named{"jais", with(tiny_jais(), true, 0.3)},
                    Named{"jais_untied_lora", with_adapters(with(tiny_jais(), false, 0), {"all"})},
                    Named{"llama", with(tiny_llama(), false, 0)},
                    Named{"llama_lora", with_adapters(with(tiny_llama(), false, 0),
                                                      {"q_proj", "v_proj", "down_proj"})},
                    Named{"llama_bias", with_bias(with(tiny_llama(), true, 0))},
                    Named{"llama_bias_lora",
                          with_adapters(with_bias(with(tiny_llama(), false, 0)), {"all"})},
                    Named{"llama_tied_dropout", with(tiny_llama(), true, 0.3)}),
    [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace trireme
