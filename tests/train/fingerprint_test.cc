#include "src/train/run/fingerprint.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "src/base/error.h"
#include "src/train/run/model_fingerprint.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

RunConfig run_of(ScheduleKind kind) {
  RunConfig config;
  config.optimizer.schedule = {
      .kind = kind, .lr = 1, .min_lr = 0.25, .warmup = 10, .steps = 100, .decay = 20};
  return config;
}

nlohmann::json fingerprint_of(const RunConfig& config) {
  return config_fingerprint(config, "digest", "tokenizer");
}

bool same_rates(const Schedule& a, const Schedule& b) {
  for (std::int64_t step = 0; step < 200; ++step) {
    if (learning_rate(a, step) != learning_rate(b, step)) {
      return false;
    }
  }
  return true;
}

TEST(Fingerprint, AFieldHasNoEffectWhereNoLearningRateDependsOnIt) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::warmup_stable_decay, ScheduleKind::inverse_sqrt}) {
    const RunConfig run = run_of(kind);
    const std::vector<std::string> unused =
        fields_without_effect(fingerprint_of(run), fingerprint_of(run));
    const auto expect_right = [&](const char* name, const Schedule& changed) {
      const bool found = std::ranges::count(unused, std::string("optimizer.schedule.") + name) > 0;
      EXPECT_EQ(found, same_rates(run.optimizer.schedule, changed))
          << schedule_name(kind) << " " << name;
    };
    Schedule changed = run.optimizer.schedule;
    changed.steps = 150;
    expect_right("steps", changed);
    changed = run.optimizer.schedule;
    changed.decay = 30;
    expect_right("decay", changed);
    changed = run.optimizer.schedule;
    changed.min_lr = 0.5;
    expect_right("min_lr", changed);
    changed = run.optimizer.schedule;
    changed.warmup = 20;
    expect_right("warmup", changed);
  }
}

TEST(Fingerprint, ARunWithoutARampGoesOnFromOlderCheckpoints) {
  RunConfig run = run_of(ScheduleKind::constant);
  nlohmann::json older = fingerprint_of(run);
  for (const char* key : {"from", "by", "every"}) {
    older.erase(std::string("train.batch_ramp.") + key);
  }
  EXPECT_EQ(with_later_fields(older), fingerprint_of(run));
  run.train.batch_ramp = {4, 4, 10};
  EXPECT_EQ(differences(with_later_fields(older), fingerprint_of(run)).size(), 3U);
}

TEST(Fingerprint, AnotherKindOfScheduleMakesNoFieldUnused) {
  const auto unused = fields_without_effect(fingerprint_of(run_of(ScheduleKind::constant)),
                                            fingerprint_of(run_of(ScheduleKind::inverse_sqrt)));
  EXPECT_TRUE(unused.empty());
}

TEST(Fingerprint, FieldsOfAnotherTypeAreNamed) {
  const RunConfig run = run_of(ScheduleKind::constant);
  const auto refusal = [&](const char* key, const nlohmann::json& value, float ema) {
    nlohmann::json saved = fingerprint_of(run);
    saved[key] = value;
    RunConfig resumed = run;
    resumed.optimizer.ema = ema;
    return message_of<DataError>([&] {
      check_same_states(saved, resumed);
      (void)fields_without_effect(saved, fingerprint_of(resumed));
    });
  };
  EXPECT_THAT(refusal("optimizer.name", 5, 0), HasSubstr("'optimizer.name' is not a string"));
  EXPECT_THAT(refusal("optimizer.name", nullptr, 0), HasSubstr("'optimizer.name'"));
  EXPECT_THAT(refusal("optimizer.ema", "x", 0.5F), HasSubstr("'optimizer.ema'"));
  EXPECT_THAT(refusal("optimizer.ema", "x", 0), HasSubstr("'optimizer.ema'"));
  EXPECT_THAT(refusal("optimizer.ema", {1}, 0.5F), HasSubstr("'optimizer.ema'"));
  EXPECT_THAT(refusal("optimizer.schedule.kind", {{"a", 1}}, 0),
              HasSubstr("'optimizer.schedule.kind' is not a string"));
}

TEST(Fingerprint, FloatsAreShownInTheirShortestForm) {
  RunConfig config;
  config.optimizer.schedule.lr = config.optimizer.lr = 3e-4F;
  config.optimizer.eps = 1e-8F;
  const nlohmann::json shown = readable_numbers(fingerprint_of(config));
  EXPECT_EQ(shown["optimizer.lr"].dump(), "0.0003");
  EXPECT_EQ(shown["optimizer.eps"].dump(), "1e-08");
  EXPECT_EQ(shown["optimizer.betas"].dump(), "[0.9,0.95]");
  EXPECT_EQ(readable_numbers({{"loss", 0.1}, {"not_finite", NAN}}).dump(),
            R"({"loss":0.1,"not_finite":null})");
}

// A field of the configuration that changes the weights is in the fingerprint: two runs that
// differ in it must not continue from each other.
TEST(Fingerprint, WhatChangesTheWeightsIsInIt) {
  using Change = void (*)(RunConfig & config);
  const std::vector<std::pair<const char*, Change>> changes = {
      {"model.layers", [](RunConfig& c) { c.model.layers = 77; }},
      {"model.tie_embeddings", [](RunConfig& c) { c.model.tie_embeddings = false; }},
      {"model.qkv_bias", [](RunConfig& c) { c.model.qkv_bias = true; }},
      {"model.alibi", [](RunConfig& c) { c.model.alibi = true; }},
      {"model.swiglu", [](RunConfig& c) { c.model.swiglu = true; }},
      {"model.embedding_scale", [](RunConfig& c) { c.model.embedding_scale = 2; }},
      {"model.logit_scale", [](RunConfig& c) { c.model.logit_scale = 2; }},
      {"model.attention_scale", [](RunConfig& c) { c.model.attention_scale = 0.5; }},
      {"model.rope_theta", [](RunConfig& c) { c.model.rope_theta = 77; }},
      {"model.rope_factor", [](RunConfig& c) { c.model.rope_scaling.factor = 77; }},
      {"model.attention_dropout", [](RunConfig& c) { c.model.attention_dropout = 0.5; }},
      {"data.sequence", [](RunConfig& c) { c.data.sequence = 77; }},
      {"data.shuffle", [](RunConfig& c) { c.data.shuffle = "none"; }},
      {"data.documents", [](RunConfig& c) { c.data.documents = "separate"; }},
      {"distill.teacher", [](RunConfig& c) { c.distill.manifest_sha256 = "12ab"; }},
      {"data.seed", [](RunConfig& c) { c.data.seed = 77; }},
      {"train.global_batch", [](RunConfig& c) { c.train.global_batch = 77; }},
      {"train.batch_ramp.by", [](RunConfig& c) { c.train.batch_ramp.by = 77; }},
      {"train.micro_batch", [](RunConfig& c) { c.train.micro_batch = 77; }},
      {"train.precision", [](RunConfig& c) { c.train.precision = "fp32"; }},
      {"train.seed", [](RunConfig& c) { c.train.seed = 77; }},
      {"train.label_smoothing", [](RunConfig& c) { c.train.label_smoothing = 0.5F; }},
      {"train.z_loss", [](RunConfig& c) { c.train.z_loss = 0.5F; }},
      {"optimizer.name", [](RunConfig& c) { c.optimizer.name = "sgd"; }},
      {"optimizer.lr", [](RunConfig& c) { c.optimizer.lr = 0.5F; }},
      {"optimizer.betas", [](RunConfig& c) { c.optimizer.betas[1] = 0.5; }},
      {"optimizer.eps", [](RunConfig& c) { c.optimizer.eps = 0.5F; }},
      {"optimizer.weight_decay", [](RunConfig& c) { c.optimizer.weight_decay = 0.5F; }},
      {"optimizer.momentum", [](RunConfig& c) { c.optimizer.momentum = 0.5F; }},
      {"optimizer.nesterov", [](RunConfig& c) { c.optimizer.nesterov = true; }},
      {"optimizer.ema", [](RunConfig& c) { c.optimizer.ema = 0.5F; }},
      {"optimizer.keep_zeros", [](RunConfig& c) { c.optimizer.keep_zeros = true; }},
      {"optimizer.clip", [](RunConfig& c) { c.optimizer.clip = 0.5F; }},
      {"optimizer.schedule.warmup", [](RunConfig& c) { c.optimizer.schedule.warmup = 77; }}};
  for (const auto& [field, change] : changes) {
    RunConfig changed;
    change(changed);
    const std::vector<std::string> found =
        differences(fingerprint_of(RunConfig{}), fingerprint_of(changed));
    ASSERT_EQ(found.size(), 1U) << field;
    EXPECT_TRUE(found.front().starts_with(std::string(field) + ":")) << found.front();
  }
  EXPECT_EQ(differences(config_fingerprint({}, "a", "x"), config_fingerprint({}, "b", "y")).size(),
            2U);
}

TEST(Fingerprint, TheLossScaleCountsForRunsThatHaveOne) {
  RunConfig plain;
  plain.train.loss_scale.initial = 2;
  EXPECT_EQ(fingerprint_of(plain), fingerprint_of(RunConfig{}));
  RunConfig half;
  half.train.precision = "fp16";
  RunConfig other = half;
  other.train.loss_scale.growth_interval = 77;
  const nlohmann::json from = fingerprint_of(half);
  const nlohmann::json changed = fingerprint_of(other);
  EXPECT_EQ(differences(from, changed, fields_without_effect(from, changed)).size(), 1U);
  const nlohmann::json to = fingerprint_of(plain);
  EXPECT_EQ(differences(from, to, fields_without_effect(from, to)),
            std::vector<std::string>{"train.precision: checkpoint \"fp16\", run \"bf16\""});
}

TEST(Fingerprint, ProductsInFp8AreInIt) {
  const nlohmann::json plain = fingerprint_of(RunConfig{});
  RunConfig eighth;
  eighth.train.products = "fp8";
  const nlohmann::json current = fingerprint_of(eighth);
  EXPECT_EQ(differences(plain, current, fields_without_effect(plain, current)).size(), 1U);
  eighth.train.fp8_scaling = "delayed";
  EXPECT_EQ(differences(current, fingerprint_of(eighth)).size(), 1U);
  nlohmann::json older = plain;
  older.erase("train.products");
  EXPECT_EQ(with_later_fields(older), plain);
}

TEST(Fingerprint, OlderRunsJoinedDocuments) {
  RunConfig run;
  nlohmann::json older = fingerprint_of(run);
  older.erase("data.documents");
  EXPECT_EQ(with_later_fields(older), fingerprint_of(run));
  EXPECT_FALSE(separates_documents(older));
  run.data.documents = "separate";
  EXPECT_EQ(differences(with_later_fields(older), fingerprint_of(run)),
            std::vector<std::string>{"data.documents: checkpoint \"joined\", run \"separate\""});
  EXPECT_TRUE(separates_documents(fingerprint_of(run)));
  for (const nlohmann::json& forged : {nlohmann::json("apart"), nlohmann::json(1)}) {
    older["data.documents"] = forged;
    EXPECT_THAT(message_of<DataError>([&] { (void)separates_documents(older); }),
                HasSubstr("data.documents"));
  }
}

TEST(Fingerprint, AttentionByCudnnCountsForTheBits) {
  RunConfig config;
  const nlohmann::json own = numerics_fingerprint(config, "reference", 1, 1, false);
  EXPECT_FALSE(own.contains("attention"));
  config.train.attention = "cudnn";
  EXPECT_EQ(numerics_fingerprint(config, "reference", 1, 1, false).at("attention"), "cudnn");
  EXPECT_EQ(fingerprint_of(config), fingerprint_of(RunConfig{}));
}

TEST(Fingerprint, WhatOnlyChangesSpeedIsNotInIt) {
  RunConfig changed;
  changed.train.steps = 77;
  changed.train.recompute = "full";
  changed.train.log_every = 77;
  changed.parallel.zero = 3;
  changed.checkpoint.keep = 77;
  EXPECT_EQ(fingerprint_of(changed), fingerprint_of(RunConfig{}));
}

TEST(Fingerprint, NumericsNameTheReplicasOnlyWhereTheyCount) {
  RunConfig config;
  const auto of = [&](int dp, int tp, bool shared) {
    return numerics_fingerprint(config, "reference", dp, tp, shared);
  };
  EXPECT_EQ(of(2, 1, false), of(4, 1, false)) << "elastic";
  EXPECT_NE(of(2, 1, false), of(2, 2, false));
  EXPECT_NE(of(2, 2, false), of(2, 2, true));
  config.reproducibility = "layout";
  EXPECT_NE(of(2, 1, false), of(4, 1, false));
  nlohmann::json older = of(2, 1, false);
  EXPECT_TRUE(fields_not_recorded(older).empty());
  older.erase("instructions");
  EXPECT_EQ(fields_not_recorded(older), std::vector<std::string>{"instructions"});
}

TEST(Fingerprint, AlgorithmsCountForProductsOfBothRuns) {
  const nlohmann::json saved = {{"algorithms", {{"a", "tile 18"}, {"b", "tile 20"}}}};
  const nlohmann::json own = {{"algorithms", {{"b", "tile 18"}, {"c", "tile 20"}}}};
  EXPECT_EQ(algorithms_of_one_run(saved, own),
            (std::vector<std::string>{"algorithms.a", "algorithms.c"}));
  EXPECT_EQ(algorithms_of_one_run(saved, nlohmann::json::object()).size(), 2U);
  EXPECT_EQ(algorithms_of_one_run(nlohmann::json::object(), own).size(), 2U);
  EXPECT_EQ(algorithms_of_one_run({{"algorithms", "damaged"}}, own).size(), 2U);
  EXPECT_EQ(fields_not_recorded({{"instructions", "sm_90"}, {"kernels", "cuda"}}),
            std::vector<std::string>{"algorithms"});
}

TEST(Fingerprint, ACheckpointOfAnotherOptimizerIsRefused) {
  RunConfig run;
  const nlohmann::json saved = fingerprint_of(run);
  EXPECT_NO_THROW(check_same_states(saved, run));
  run.optimizer.name = "sgd";
  EXPECT_THAT(message_of<ConfigError>([&] { check_same_states(saved, run); }),
              testing::HasSubstr("the optimizer adamw, but optimizer.name is sgd"));
  run.optimizer.name = "adamw";
  run.optimizer.ema = 0.5F;
  EXPECT_THAT(message_of<ConfigError>([&] { check_same_states(saved, run); }),
              testing::HasSubstr("optimizer.ema is 0.5, but the checkpoint holds no moving"));
  const nlohmann::json averaged = fingerprint_of(run);
  EXPECT_NO_THROW(check_same_states(averaged, run));
  run.optimizer.ema = 0;
  EXPECT_NO_THROW(check_same_states(averaged, run)) << "the average is left alone";
}

TEST(Fingerprint, DescribesItsModel) {
  RunConfig run;
  run.model.family = Family::llama;
  run.model.layers = 3;
  run.model.hidden = 32;
  run.model.heads = 4;
  run.model.kv_heads = 2;
  run.model.ffn = 40;
  run.model.vocab = 100;
  run.model.context = 50;
  run.model.tie_embeddings = false;
  run.model.qkv_bias = true;
  run.model.rope_theta = 500000;
  run.model.rope_scaling = {8, 1, 4, 8192};
  run.model.dropout = 0.25;
  run.model.attention_dropout = 0.125;
  run.model.initializer_range = 0.5;
  run.model.norm_epsilon = 1e-6;
  run.model.complete();
  nlohmann::json saved = nlohmann::json::parse(fingerprint_of(run).dump());
  EXPECT_EQ(model_from_fingerprint(saved), run.model);
  // Version 0.1 had no dropout of attention, and no biases of queries.
  saved.erase("model.attention_dropout");
  saved.erase("model.qkv_bias");
  run.model.attention_dropout = 0;
  run.model.qkv_bias = false;
  EXPECT_EQ(model_from_fingerprint(saved), run.model);
}

TEST(Fingerprint, NamesOfFieldsForgeNoLines) {
  const nlohmann::json saved = {{"a\nmodel.hidden", 1}};
  EXPECT_EQ(differences(saved, nlohmann::json::object()),
            std::vector<std::string>{"a\\nmodel.hidden: checkpoint 1, run has none"});
}

}  // namespace
}  // namespace trireme
