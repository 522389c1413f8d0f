// Tests whole models: gradients are derivatives, each parameter is announced once, the number of
// threads changes no bit, and decoding gives the same logits as the whole sequence at once.
#include "src/nn/model.h"

#include <cmath>
#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/ignored_target.h"
#include "src/nn/device_tokens.h"
#include "tests/nn/tiny_model.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

ModelConfig config_named(const std::string& name) {
  ModelConfig c = name.starts_with("gpt2")   ? tiny_gpt2()
                  : name.starts_with("jais") ? tiny_jais()
                                             : tiny_llama();
  if (name.ends_with("_other_tie")) {
    c.tie_embeddings = !c.tie_embeddings;
  }
  c.qkv_bias = name.ends_with("_bias");
  if (name.ends_with("_lora")) {
    c = with_adapters(c, {"all"});
  }
  if (name.ends_with("_dropout")) {
    c.dropout = 0.2;
  }
  return c;
}

class ModelTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  ModelConfig config() const { return config_named(std::get<0>(GetParam())); }
  const Kernels& kernels() const { return kernels_named(std::get<1>(GetParam())); }
};

// Returns f32 [n] with hashed entries in [-1, 1).
std::vector<float> direction(std::uint64_t seed, std::int64_t n) {
  std::vector<float> d;
  for (std::int64_t i = 0; i < n; ++i) {
    d.push_back(
        2 * uniform_float(philox({static_cast<std::uint32_t>(i), 0, 0, 0}, philox_key(seed))[0]) -
        1);
  }
  return d;
}

// Compares each parameter's gradient along a direction with the central difference of the loss.
TEST_P(ModelTest, GradientsAreDerivativesOfTheLoss) {
  TinyModel tiny(config(), DType::f32, kernels());
  tiny.run.training = true;
  tiny.run.dropout = {99, 5};
  tiny.run.first_sample = 12;
  const Tokens tokens(2, 11, config().vocab, 3);
  tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
  const Tensor kept(tiny.context.state(), tiny.gradients.shape(), DType::f32);
  std::memcpy(kept.view().data, tiny.gradients.view().data,
              static_cast<std::size_t>(kept.view().bytes()));
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    const Parameter& parameter = tiny.store[id];
    if (parameter.frozen) {
      continue;
    }
    auto* x = as<float>(tiny.masters->value(id));
    const std::vector<float> original(x, x + parameter.elements());
    const std::vector<float> d = direction(static_cast<std::uint64_t>(id), parameter.elements());
    const auto* gradient = as<float>(kept.view()) + parameter.offset;
    double slope = 0;
    double size = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      slope += static_cast<double>(gradient[i]) * static_cast<double>(d[i]);
      size += std::pow(gradient[i], 2);
    }
    const float h = 0x1p-9F;
    double difference = 0;
    for (const float sign : {1.0F, -1.0F}) {
      for (std::size_t i = 0; i < d.size(); ++i) {
        x[i] = original[i] + sign * h * d[i];
      }
      // The gradients overwrite those of the pass before and are not needed.
      difference +=
          static_cast<double>(sign) * tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
    }
    std::copy(original.begin(), original.end(), x);
    EXPECT_NEAR(difference / (2 * static_cast<double>(h)), slope, 3e-3 * (std::sqrt(size) + 1))
        << parameter.name;
  }
}

TEST_P(ModelTest, EveryGradientIsAnnouncedOnceWhenFinal) {
  TinyModel tiny(config(), DType::f32, kernels());
  const Tokens tokens(2, 11, config().vocab, 3);
  std::map<ParameterId, std::vector<float>> announced;
  FlatGradients sink(tiny.store, tiny.gradients.view(), [&](ParameterId id) {
    const auto* g = as<float>(tiny.sink.gradient(id));
    const bool first =
        announced.emplace(id, std::vector<float>(g, g + tiny.store[id].elements())).second;
    EXPECT_TRUE(first) << tiny.store[id].name;
  });
  tiny.run.gradients = &sink;
  tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    EXPECT_EQ(announced.contains(id), tiny.store[id].trained) << tiny.store[id].name;
  }
  for (const auto& [id, then] : announced) {
    const auto* now = as<float>(tiny.sink.gradient(id));
    EXPECT_EQ(std::memcmp(then.data(), now, then.size() * sizeof(float)), 0) << tiny.store[id].name;
  }
}

// StepOutcome is the loss and the gradients of a fresh model.
struct StepOutcome {
  double loss;
  std::vector<float> gradients;
};
StepOutcome outcome(const ModelConfig& config, DType compute, const Kernels& kernels, int threads) {
  TinyModel tiny(config, compute, kernels, threads);
  tiny.run.training = true;
  const Tokens tokens(3, 13, config.vocab, 1);
  StepOutcome result{tiny.model.forward_backward(tokens.micro_batch, 0.125F, tiny.run), {}};
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    const auto* g = as<float>(tiny.sink.gradient(id));
    result.gradients.insert(result.gradients.end(), g, g + tiny.store[id].elements());
  }
  return result;
}

TEST_P(ModelTest, TheNumberOfThreadsChangesNoBit) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const StepOutcome one = outcome(config(), compute, kernels(), 1);
    for (const int threads : {2, 3, 4}) {
      const StepOutcome many = outcome(config(), compute, kernels(), threads);
      EXPECT_EQ(one.loss, many.loss);
      EXPECT_EQ(std::memcmp(one.gradients.data(), many.gradients.data(),
                            one.gradients.size() * sizeof(float)),
                0);
    }
  }
}

TEST_P(ModelTest, EvaluationGivesTheSameLossAndKeepsNothing) {
  TinyModel tiny(config(), DType::f32, kernels());
  const Tokens tokens(2, 11, config().vocab, 3);
  const double evaluated = tiny.model.evaluate(tokens.micro_batch, tiny.run);
  const std::int64_t evaluation_peak = tiny.context.activations().peak_bytes();
  EXPECT_EQ(evaluated, tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run));
  EXPECT_LT(evaluation_peak, tiny.context.activations().peak_bytes());
}

// A sample alone has the same loss as within a batch.
TEST_P(ModelTest, SamplesOfABatchDoNotMix) {
  TinyModel tiny(config(), DType::f32, kernels());
  const std::int64_t time = 11;
  const Tokens tokens(3, time, config().vocab, 3);
  double sum = 0;
  for (std::int64_t b = 0; b < 3; ++b) {
    MicroBatch one = tokens.micro_batch;
    one.batch = 1;
    one.ids = one.ids.slice(b * time, time);
    one.targets = one.targets.slice(b * time, time);
    sum += tiny.model.evaluate(one, tiny.run);
  }
  EXPECT_NEAR(tiny.model.evaluate(tokens.micro_batch, tiny.run), sum, 1e-5 * sum);
}

TEST_P(ModelTest, DropoutBelongsToTheSampleNotToTheMicroBatch) {
  ModelConfig c = config();
  c.dropout = 0.3;
  TinyModel tiny(c, DType::f32, kernels());
  tiny.run.training = true;
  tiny.run.dropout = {7, 2};
  const std::int64_t time = 8;
  const Tokens tokens(2, time, c.vocab, 3);
  const double both = tiny.model.evaluate(tokens.micro_batch, tiny.run);
  double sum = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    MicroBatch one = tokens.micro_batch;
    one.batch = 1;
    one.ids = one.ids.slice(b * time, time);
    one.targets = one.targets.slice(b * time, time);
    tiny.run.first_sample = b;
    sum += tiny.model.evaluate(one, tiny.run);
  }
  EXPECT_NEAR(both, sum, 1e-5 * sum);
  tiny.run.first_sample = 0;
  tiny.run.dropout.step = 3;
  EXPECT_GT(std::abs(tiny.model.evaluate(tokens.micro_batch, tiny.run) - both), 1e-6);
}

TEST_P(ModelTest, DecodingInPiecesGivesTheLogitsOfTheWhole) {
  TinyModel tiny(config(), DType::f32, kernels());
  const Tokens tokens(1, 12, config().vocab, 4);
  const ConstView& ids = tokens.micro_batch.ids;
  KeyValueCache whole(tiny.context, config(), 12, DType::f32);
  const Tensor expected = tiny.model.decode(ids, whole, tiny.run);
  KeyValueCache cache(tiny.context, config(), 13, DType::f32);
  tiny.model.decode(ids.slice(0, 7), cache, tiny.run);
  // Decode two wrong tokens, and remove them again.
  tiny.model.decode(ids.slice(0, 2), cache, tiny.run);
  cache.truncate(7);
  for (std::int64_t t = 7; t < 11; ++t) {
    tiny.model.decode(ids.slice(t, 1), cache, tiny.run);
  }
  const Tensor actual = tiny.model.decode(ids.slice(11, 1), cache, tiny.run);
  EXPECT_EQ(cache.length(), 12);
  for (std::int64_t v = 0; v < config().vocab; ++v) {
    EXPECT_NEAR(as<float>(actual.view())[v], as<float>(expected.view())[v], 1e-5);
  }
  EXPECT_THROW(tiny.model.decode(ids.slice(0, 2), cache, tiny.run), ConfigError);
}

TEST_P(ModelTest, TokensBeyondTheVocabularyAreRefused) {
  TinyModel tiny(config(), DType::f32, kernels());
  Tokens tokens(1, 8, config().vocab, 4);
  const auto move = [&] { DeviceTokens(tiny.context, tokens.micro_batch, config().vocab); };
  EXPECT_NO_THROW(move());
  tokens.ids[5] = static_cast<std::int32_t>(config().vocab);
  EXPECT_THROW(move(), DataError);
  tokens.ids[5] = -1;
  EXPECT_THROW(move(), DataError) << "only targets can be ignored";
  tokens.ids[5] = 0;
  tokens.targets[7] = kIgnoredTarget;
  EXPECT_NO_THROW(move());
  tokens.targets[7] = kIgnoredTarget - 1;
  EXPECT_THROW(move(), DataError);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest,
                         testing::Combine(testing::Values("gpt2", "gpt2_other_tie", "gpt2_dropout",
                                                          "gpt2_lora", "jais", "jais_other_tie",
                                                          "jais_dropout", "jais_lora", "llama",
                                                          "llama_other_tie", "llama_dropout",
                                                          "llama_bias", "llama_lora"),
                                          testing::ValuesIn(kernel_tables())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" + std::get<1>(instance.param);
                         });

// The vocabulary is so large that the logits of the micro-batch take several chunks.
TEST(HeadTest, ChunksOfLogitsAddUp) {
  ModelConfig config = tiny_gpt2();
  TinyModel whole(config, DType::f32, kernels_named("reference"));
  const Tokens tokens(2, 11, config.vocab, 3);
  ParameterStore& store = whole.store;
  Head head;
  head.norm = {store.count() - 2, store.count() - 1, 1e-5F};
  ASSERT_EQ(store[head.norm.weight].name, "transformer.ln_f.weight");
  head.output.weight = 0;
  head.output.in = config.hidden;
  head.output.out = config.vocab;
  head.output.transposed = true;
  head.tied = true;
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  for (const std::int64_t rows : {100, 22, 7, 1}) {
    head.rows_at_once = rows;
    Tensor x(whole.context.activations(), {2, 11, config.hidden}, DType::f32);
    const std::vector<float> values = direction(1, x.elements());
    std::copy(values.begin(), values.end(), as<float>(x.view()));
    const Tensor gradient =
        head.forward_backward({x, {}}, tokens.micro_batch.targets, 0.5F, whole.run);
    losses.push_back(*as<double>(whole.loss.view()));
    head.loss({x, {}}, tokens.micro_batch.targets, whole.run);
    EXPECT_EQ(*as<double>(whole.loss.view()), losses.back());
    const auto* g = as<float>(whole.sink.gradient(0));
    gradients.emplace_back(g, g + store[0].elements());
    const auto* d = as<float>(gradient.view());
    gradients.back().insert(gradients.back().end(), d, d + gradient.elements());
  }
  for (std::size_t i = 1; i < gradients.size(); ++i) {
    EXPECT_EQ(losses[i], losses[0]);
    EXPECT_THAT(gradients[i], testing::Pointwise(testing::FloatNear(1e-5F), gradients[0]));
  }
}

TEST(Model, RefusesSequencesBeyondItsContext) {
  const ModelConfig config = tiny_gpt2();
  TinyModel model(config, DType::f32, kernels_named("reference"));
  const Tokens fitting(1, config.context, config.vocab, 0);
  EXPECT_GT(model.model.evaluate(fitting.micro_batch, model.run), 0);
  const Tokens longer(1, config.context + 1, config.vocab, 0);
  for (const bool training : {false, true}) {
    const std::string text = message_of<ConfigError>([&] {
      training ? model.model.forward_backward(longer.micro_batch, 1, model.run)
               : model.model.evaluate(longer.micro_batch, model.run);
    });
    EXPECT_THAT(text, testing::HasSubstr("14 tokens"));
    EXPECT_THAT(text, testing::HasSubstr("context of 13"));
  }
}

}  // namespace
}  // namespace trireme
