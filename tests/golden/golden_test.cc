// Compares losses, gradients, logits and ten AdamW steps with the files that make_golden.py made
// with PyTorch in float64, for every kernel table, in f32 and bf16, and in f16 with a scaled loss
// for those that have it.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/nn/device_tokens.h"
#include "src/optim/gradient_norm.h"
#include "src/optim/optimizer.h"
#include "tests/golden/golden_case.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

using nlohmann::json;

class GoldenTest : public testing::TestWithParam<std::tuple<std::string, std::string, DType>> {
 protected:
  std::string name() const { return std::get<0>(GetParam()); }
  DType compute() const { return std::get<2>(GetParam()); }
  json golden_ = json::parse(read_file(golden_folder() / (name() + ".json")));
  TinyModel tiny_{golden_config(golden_.at("config")), compute(), std::get<1>(GetParam())};

  // Returns the factor of the loss; in f16, gradients vanish without one.
  double loss_scale() const { return compute() == DType::f16 ? 1024 : 1; }

  // Returns the mean loss of a step's tokens, and computes the gradients of this mean, times the
  // loss scale.
  double forward_backward(std::int64_t step) {
    const std::int64_t batch = golden_.at("batch");
    const std::int64_t time = golden_.at("time");
    const Tokens tokens(batch, time, tiny_.model.config().vocab, step);
    const auto count = static_cast<double>(batch * time);
    const DeviceTokens held(tiny_.context, tokens.micro_batch, tiny_.model.config().vocab);
    return tiny_.model.forward_backward(held.micro_batch(),
                                        static_cast<float>(loss_scale() / count), tiny_.run) /
           count;
  }
};

TEST_P(GoldenTest, LossAndGradients) {
  const GoldenTolerance allowed = golden_tolerance(compute());
  const double loss = forward_backward(0);
  EXPECT_NEAR(loss, golden_.at("loss"), allowed.loss * golden_.at("loss").get<double>());

  const std::string file = read_file(golden_folder() / (name() + ".gradients.f32"));
  ASSERT_EQ(golden_.at("parameters").size(), static_cast<std::size_t>(tiny_.store.count()));
  const auto* expected = reinterpret_cast<const float*>(file.data());
  double all_difference = 0;
  double all = 0;
  std::size_t index = 0;
  for (const ParameterId id : tiny_.store.ids_by_name()) {
    const json& parameter = golden_.at("parameters")[index++];
    ASSERT_EQ(tiny_.store[id].name, parameter.at("name"));
    ASSERT_EQ(tiny_.store[id].shape().to_vector(),
              parameter.at("shape").get<std::vector<std::int64_t>>());
    const std::vector<float> actual = tiny_.context.read<float>(tiny_.sink.gradient(id));
    double difference = 0;
    double norm = 0;
    for (const float gradient : actual) {
      difference += std::pow(gradient / loss_scale() - *expected, 2);
      norm += std::pow(*expected, 2);
      ++expected;
    }
    // In bf16, a single small tensor may differ more than all tensors together may.
    EXPECT_LE(std::sqrt(difference),
              (compute() == DType::f32 ? 1 : 2) * allowed.gradient * std::sqrt(norm))
        << tiny_.store[id].name;
    all_difference += difference;
    all += norm;
  }
  EXPECT_EQ(reinterpret_cast<const char*>(expected), file.data() + file.size());
  EXPECT_LE(std::sqrt(all_difference / all), allowed.gradient);
}

TEST_P(GoldenTest, TenStepsOfAdamWWithClippingAndDecay) {
  const json& o = golden_.at("optimizer");
  Optimizer optimizer(*tiny_.masters,
                      {o.at("beta1"), o.at("beta2"), o.at("eps"), o.at("weight_decay")});
  for (std::size_t step = 0; step < golden_.at("losses").size(); ++step) {
    const double expected = golden_.at("losses")[step];
    const double expected_norm = golden_.at("gradient_norms")[step];
    EXPECT_NEAR(forward_backward(static_cast<std::int64_t>(step)), expected,
                golden_tolerance(compute()).loss * expected)
        << "step " << step;
    const double norm = gradient_norm(tiny_.store, tiny_.gradients.view()) / loss_scale();
    // In bf16 the results drift apart slowly, because Adam turns rounding errors of small gradients
    // into whole steps.
    if (compute() == DType::f32 || step == 0) {
      EXPECT_NEAR(norm, expected_norm, golden_tolerance(compute()).gradient * expected_norm);
    }
    const double scale = clip_factor(norm, o.at("clip"));
    EXPECT_LT(scale, 1);
    optimizer.step(0, tiny_.gradients.view(),
                   {static_cast<std::int64_t>(step) + 1, o.at("lr"),
                    static_cast<float>(scale / loss_scale())});
  }
}

TEST_P(GoldenTest, LogitsOfADecodedSequence) {
  const std::int64_t time = golden_.at("time");
  const Tokens tokens(1, time, tiny_.model.config().vocab, 0);
  KeyValueCache cache(tiny_.context, tiny_.model.config(), time, compute());
  // The prompt is decoded at once, and the rest token by token.
  const std::int64_t prompt = 5;
  const auto decode = [&](std::int64_t first, std::int64_t n) {
    return tiny_.model.decode(tokens.micro_batch.ids.slice(first, n), cache, tiny_.run);
  };
  Tensor last = decode(0, prompt);
  for (std::int64_t t = prompt; t < time; ++t) {
    last = decode(t, 1);
  }
  const std::vector<float> logits = tiny_.context.read<float>(last.view());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = golden_.at("last_logits")[i];
    difference += std::pow(logits[i] - expected, 2);
    norm += std::pow(expected, 2);
  }
  EXPECT_LE(std::sqrt(difference / norm), golden_tolerance(compute()).gradient);
}

std::string name_of(const testing::TestParamInfo<GoldenTest::ParamType>& instance) {
  const auto& [model, table, compute] = instance.param;
  return fmt::format("{}_{}_{}", model, table, dtype_name(compute));
}

INSTANTIATE_TEST_SUITE_P(
    Models, GoldenTest,
    testing::Combine(testing::Values("gpt2", "gpt2_untied", "jais", "llama", "llama3_tied"),
                     testing::ValuesIn(golden_tables()), testing::Values(DType::f32, DType::bf16)),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    HalfPrecision, GoldenTest,
    testing::Combine(testing::Values("gpt2", "gpt2_untied", "jais", "llama", "llama3_tied"),
                     testing::ValuesIn(golden_f16_tables()), testing::Values(DType::f16)),
    name_of);

}  // namespace
}  // namespace trireme
