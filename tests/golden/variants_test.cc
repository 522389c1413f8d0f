// Compares ten steps of each variant (SGD, label smoothing and z-loss, a moving average of the
// weights, dropout of attention, documents that are apart, a teacher) with variants.json, which
// make_variants.py made with PyTorch in float64, for every kernel table, in f32 and bf16.
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/ignored_target.h"
#include "src/nn/device_tokens.h"
#include "src/nn/teaching.h"
#include "src/optim/gradient_norm.h"
#include "src/optim/optimizer.h"
#include "tests/golden/golden_case.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kTime = 17;

class VariantsTest : public testing::TestWithParam<std::tuple<std::string, std::string, DType>> {
 protected:
  DType compute() const { return std::get<2>(GetParam()); }

  static ModelConfig config_of(const std::string& name) {
    return golden_config(json::parse(read_file(golden_folder() / (name + ".json"))).at("config"));
  }
  static ModelConfig model_of(const json& variant) {
    ModelConfig config = config_of(variant.at("case").get<std::string>());
    config.attention_dropout = variant.value("attention_dropout", 0.0);
    return config;
  }

  OptimizerOptions optimizer_options() const {
    OptimizerOptions options;
    options.beta2 = 0.95F;
    options.kind = parse_optimizer(variant_.value("optimizer", "adamw"));
    options.weight_decay = variant_.value("weight_decay", 0.1F);
    options.momentum = variant_.value("momentum", 0.9F);
    options.nesterov = variant_.value("nesterov", false);
    options.ema = variant_.value("ema", 0.0F);
    return options;
  }

  // Sets the variant's documents. The last token of each predicts nothing, unless the document goes
  // on behind its sample.
  void separate_documents(Tokens& tokens) const {
    std::vector<DocumentRange> documents;
    for (const json& each : variant_["documents"]) {
      documents.push_back({each[0], each[1], each[2]});
      const std::int64_t end = documents.back().first + documents.back().time;
      if (end < kTime) {
        tokens.targets[static_cast<std::size_t>(documents.back().row * kTime + end - 1)] =
            kIgnoredTarget;
      }
    }
    tokens.micro_batch.documents =
        std::make_shared<const std::vector<DocumentRange>>(std::move(documents));
  }

  json variant_ =
      json::parse(read_file(golden_folder() / "variants.json")).at(std::get<0>(GetParam()));
  TinyModel tiny_{model_of(variant_), compute(), std::get<1>(GetParam())};
  // Not used unless the variant names a teacher.
  TinyModel teacher_{config_of(variant_.value("teacher", variant_.at("case").get<std::string>())),
                     compute(), std::get<1>(GetParam())};
  Teaching teaching_{teacher_.model, teacher_.store, variant_.value("weight", 0.0F),
                     variant_.value("temperature", 1.0F)};
  Tensor taught_{tiny_.context.state(), {2}, DType::f64};
};

TEST_P(VariantsTest, TenSteps) {
  const double loss_room = golden_tolerance(compute()).loss;
  const double norm_room = golden_tolerance(compute()).gradient;
  Optimizer optimizer(*tiny_.masters, optimizer_options());
  optimizer.start_average();
  trireme::Run& run = tiny_.run;
  run.training = true;
  run.loss_terms = {variant_.value("label_smoothing", 0.0F), variant_.value("z_loss", 0.0F)};
  run.teaching = variant_.contains("teacher") ? &teaching_ : nullptr;
  run.taught = taught_.view();
  for (std::size_t step = 0; step < variant_.at("losses").size(); ++step) {
    const double expected = variant_["losses"][step];
    const double expected_norm = variant_.at("gradient_norms")[step];
    Tokens tokens(kBatch, kTime, tiny_.model.config().vocab, static_cast<std::int64_t>(step));
    if (variant_.contains("documents")) {
      separate_documents(tokens);
    }
    const auto count = static_cast<double>(counted_targets(tokens.targets.data(), kBatch * kTime));
    run.dropout = {variant_.value("seed", std::uint64_t{0}), static_cast<std::uint32_t>(step)};
    const DeviceTokens held(tiny_.context, tokens.micro_batch, tiny_.model.config().vocab);
    const double loss =
        tiny_.model.forward_backward(held.micro_batch(), static_cast<float>(1 / count), run);
    EXPECT_NEAR(loss / count, expected, loss_room * expected) << "step " << step;
    const double norm = gradient_norm(tiny_.store, tiny_.gradients.view());
    // In bf16 the results drift apart slowly.
    if (compute() == DType::f32 || step == 0) {
      EXPECT_NEAR(norm, expected_norm, norm_room * expected_norm) << "step " << step;
    }
    optimizer.step(0, tiny_.gradients.view(),
                   {static_cast<std::int64_t>(step) + 1, variant_.value("lr", 0.01F),
                    static_cast<float>(clip_factor(norm, variant_.at("clip")))});
  }
  if (variant_.contains("average_loss")) {
    const View average = optimizer.state(optimizer.options().states() - 1, 0);
    tiny_.context.stream().copy(tiny_.masters->values(0), average);
    tiny_.masters->refresh_working_copies();
    run.training = false;
    const Tokens tokens(kBatch, kTime, tiny_.model.config().vocab, 0);
    const double expected = variant_["average_loss"];
    const DeviceTokens held(tiny_.context, tokens.micro_batch, tiny_.model.config().vocab);
    EXPECT_NEAR(tiny_.model.evaluate(held.micro_batch(), run) / (kBatch * kTime), expected,
                loss_room * expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, VariantsTest,
    testing::Combine(testing::Values("terms", "terms_llama", "sgd", "sgd_nesterov", "muon",
                                     "muon_gpt2", "average", "attention_dropout",
                                     "attention_dropout_llama", "documents", "documents_scaled",
                                     "distillation", "distillation_documents"),
                     testing::ValuesIn(golden_tables()), testing::Values(DType::f32, DType::bf16)),
    [](const auto& instance) {
      return std::get<0>(instance.param) + "_" + std::get<1>(instance.param) +
             (std::get<2>(instance.param) == DType::f32 ? "_f32" : "_bf16");
    });

}  // namespace
}  // namespace trireme
