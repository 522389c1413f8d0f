#include "src/train/run/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/nn/model_size.h"
#include "src/train/run/batch_ramp_text.h"
#include "src/train/run/layout.h"
#include "src/train/run/model_presets.h"
#include "src/train/run/run_config_checks.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

LoadedConfig load(const std::vector<std::string>& arguments) {
  static const TempFolder folder;
  const auto file = folder.path() / "run.yaml";
  if (!std::filesystem::exists(file)) {
    write_file_durably(file,
                       "model: {preset: gpt2-124m}\ndata: {train: d}\nrun: {dir: r}\n"
                       "train: {steps: 5, global_batch: 8}\n");
  }
  return load_run_config(
      {.file = file, .arguments = arguments, .environment = nullptr, .site = {}});
}

std::string refusal(const std::vector<std::string>& arguments) {
  return message_of<ConfigError>([&] { load(arguments); });
}

TEST(RunConfig, TheLargestModelIsCountedExactly) {
  const RunConfig config =
      load({"model.preset=llama-405b", "train.global_batch=4096", "train.steps=2000000"}).config;
  EXPECT_EQ(parameter_count(config.model), 405'853'388'800);
  EXPECT_EQ(config.tokens_per_step(), 4096 * config.model.context);
  EXPECT_NEAR(flops_per_token(config.model, config.data.sequence) / 4.046e12, 1, 1e-3);
}

TEST(RunConfig, LossScalesArePowersOfTwo) {
  for (const char* key : {"initial", "minimum", "maximum"}) {
    for (const char* scale : {"3", "0", "0.5", "-2", "1e30", "1000"}) {
      const std::string name = fmt::format("train.loss_scale.{}", key);
      EXPECT_THAT(refusal({fmt::format("{}={}", name, scale)}),
                  AllOf(HasSubstr(name), HasSubstr("power of two")))
          << scale;
    }
  }
  EXPECT_THAT(refusal({"train.loss_scale.initial=4", "train.loss_scale.minimum=8"}),
              HasSubstr("4 is not between train.loss_scale.minimum 8 and maximum 4294967296"));
  EXPECT_EQ(load({"train.loss_scale.initial=1024"}).config.train.loss_scale.initial, 1024);
}

TEST(RunConfig, Fp16NeedsCudaDevices) {
  EXPECT_THAT(refusal({"train.precision=fp16", "train.device=cpu"}),
              AllOf(HasSubstr("train.precision"), HasSubstr("choose bf16 or fp32")));
  const RunConfig config = load({"train.precision=fp16"}).config;
  EXPECT_EQ(config.compute_dtype(), DType::f16);
  EXPECT_THAT(message_of<ConfigError>([&] { check_precision(config, Device::cpu()); }),
              HasSubstr("set train.precision to one of them"));
  check_precision(config, {DeviceKind::cuda, 0});
}

TEST(RunConfig, AttentionByCudnnNeedsSuitableModelsAndDevices) {
  EXPECT_FALSE(load({}).config.train.attends_by_cudnn());
  const RunConfig config = load({"train.attention=cudnn"}).config;
  EXPECT_TRUE(config.train.attends_by_cudnn());
  check_precision(config, {DeviceKind::cuda, 0});
  EXPECT_THAT(message_of<ConfigError>([&] { check_precision(config, Device::cpu()); }),
              HasSubstr("set train.attention to own"));
  for (const char* key : {"train.precision=fp32", "train.device=cpu"}) {
    EXPECT_THAT(refusal({"train.attention=cudnn", key}),
                HasSubstr("train.attention: cudnn needs train.precision bf16 or fp16"));
  }
  EXPECT_THAT(refusal({"train.attention=cudnn", "model.attention_dropout=0.1"}),
              HasSubstr("other masks"));
  EXPECT_THAT(refusal({"train.attention=cudnn", "model.heads=192"}),
              HasSubstr("model.head_dim is 4"));
}

TEST(RunConfig, ProductsInFp8NeedBf16AndSuitableSizes) {
  EXPECT_THAT(refusal({"train.products=fp8", "train.precision=fp32"}),
              HasSubstr("train.products: fp8 needs train.precision bf16"));
  EXPECT_THAT(refusal({"train.products=fp8", "train.device=cpu"}), HasSubstr("CUDA devices"));
  const RunConfig config = load({"train.products=fp8"}).config;
  check_fp8_shapes(config, 2);
  EXPECT_THAT(message_of<ConfigError>([&] { check_fp8_shapes(config, 64); }),
              HasSubstr("but heads x head_dim / parallel.tp is 12"));
  EXPECT_THAT(message_of<ConfigError>([&] { check_precision(config, Device::cpu()); }),
              HasSubstr("compute capability 8.9 or later, but this run computes on the CPU"));
}

TEST(RunConfig, NumbersThatWouldOverflowAreRefused) {
  EXPECT_THAT(refusal({"train.global_batch=4611686018427387904"}), HasSubstr("2^56 tokens"));
  EXPECT_THAT(refusal({"train.global_batch=100000000", "train.steps=4000000"}),
              HasSubstr("2^56 tokens"));
  EXPECT_THAT(refusal({"train.steps=4294967296"}), HasSubstr("train.steps"));
  EXPECT_THAT(refusal({"model.layers=65536", "model.hidden=16777216", "model.heads=1024",
                       "model.ffn=16777216"}),
              HasSubstr("parameters"));
}

// Every integer key of the configuration takes part, as the binder lists them: each value gives a
// ConfigError, or a configuration whose layout can be planned.
TEST(RunConfig, ExtremeIntegersAreRefusedOrWork) {
  const std::vector<std::string> values = {"0",
                                           "1",
                                           "-1",
                                           "2147483648",
                                           "4611686018427387904",
                                           "9223372036854775807",
                                           "-9223372036854775808"};
  const std::vector<std::vector<std::string>> companies = {
      {"model.preset=tiny-llama"},
      {"train.micro_batch=-1", "optimizer.schedule.kind=wsd"},
      {"divergence.spike=rewind", "checkpoint.every=100", "checkpoint.keep=3"}};
  std::size_t keys = 0;
  const LoadedConfig defaults = load({});
  for (const ResolvedKey& key : defaults.binder.resolved()) {
    if (key.allowed.find("integer") == std::string::npos && !key.allowed.starts_with("size")) {
      continue;
    }
    ++keys;
    for (const std::string& value : values) {
      for (std::vector<std::string> arguments : companies) {
        arguments.push_back(key.key + "=" + value);
        SCOPED_TRACE(testing::PrintToString(arguments));
        try {
          const RunConfig config = load(arguments).config;
          EXPECT_GE(config.micro_batches(), 1);
          (void)describe_layout(make_layout(config, 1, 1), config);
        } catch (const ConfigError& refused) {
          EXPECT_STRNE(refused.what(), "");
        }
      }
    }
  }
  EXPECT_GE(keys, 40U);
}

TEST(RunConfig, ADivisorOfZeroIsRefusedBeforeItDivides) {
  EXPECT_THAT(refusal({"train.micro_batch=0"}),
              HasSubstr("train.micro_batch: 0 is not allowed; allowed: integer, at least 1"));
  EXPECT_THAT(refusal({"train.global_batch=-9223372036854775808", "train.micro_batch=-1"}),
              HasSubstr("2 problems"));
  EXPECT_THAT(refusal({"train.global_batch=16777217", "train.steps=1", "data.sequence=1"}),
              HasSubstr("2^20 micro-batches"));
}

TEST(RunConfig, NumbersOutsideTheirTypesAreRefused) {
  EXPECT_THAT(refusal({"optimizer.lr=1e39"}), HasSubstr("optimizer.lr: 1e+39 is outside"));
  EXPECT_THAT(refusal({"optimizer.lr=1e-60"}), HasSubstr("32-bit float"));
  for (const std::string key : {"comm.deadline.start", "comm.deadline.step", "checkpoint.mtbf",
                                "comm.deadline.checkpoint", "comm.deadline.evaluate"}) {
    EXPECT_THAT(refusal({key + "=1e300"}), HasSubstr(key));
  }
}

TEST(RunConfig, BoundsHoldForTheFloatThatANumberBecomes) {
  EXPECT_THAT(refusal({"train.z_loss=1e38"}), HasSubstr("train.z_loss: 1e38 is not allowed"));
  for (const std::string key : {"train.label_smoothing", "optimizer.momentum", "optimizer.ema"}) {
    EXPECT_THAT(refusal({key + "=0.9999999999"}), HasSubstr(key + ": 0.9999999999 is not allowed"));
    EXPECT_NO_THROW(load({key + "=0.9999999"}));
  }
  for (const std::string key : {"model.dropout", "model.attention_dropout"}) {
    EXPECT_THAT(refusal({key + "=0.99999999"}), HasSubstr(key));
    EXPECT_NO_THROW(load({key + "=0.9999999"}));
  }
}

TEST(RunConfig, PathsThatAreTooLongAreRefused) {
  for (const std::string key : {"run.dir", "checkpoint.dir"}) {
    EXPECT_THAT(refusal({key + "=" + std::string(256, 'x')}), HasSubstr(key + ": its path is too"));
    std::string deep;
    while (deep.size() < 5000) {
      deep += "folder/";
    }
    EXPECT_THAT(refusal({key + "=" + deep}), HasSubstr("at most 4095 characters"));
  }
}

TEST(RunConfig, TheRootIsNoRunsFolder) {
  const TempFolder folder;
  const auto link = folder.path() / "link";
  std::filesystem::create_directory_symlink("/", link);
  for (const std::string& root :
       {std::string("/"), std::string("/./"), std::string("//"), std::string("/tmp/.."),
        std::string("/no-such-folder/../."), link.string(), (link / ".").string()}) {
    for (const std::string key : {"run.dir", "checkpoint.dir"}) {
      EXPECT_THAT(refusal({key + "=" + root}), HasSubstr("is the root of the file system")) << root;
    }
  }
  EXPECT_NO_THROW(load({"run.dir=" + (link / "tmp").string()}));
  EXPECT_NO_THROW(load({"run.dir=..."}));
}

TEST(RunConfig, WhatFollowsADivergence) {
  const DivergenceConfig defaults = load({}).config.divergence;
  EXPECT_EQ(defaults.not_finite, "skip");
  EXPECT_EQ(defaults.spike, "warn");
  for (const auto& [argument, words] : std::vector<std::pair<std::string, std::string>>{
           {"divergence.spike=rewnd", "ignore|warn|skip|rewind|stop"},
           {"divergence.not_finite=ignore", "allowed: skip|rewind|stop"},
           {"divergence.not_finite=warn", "allowed: skip|rewind|stop"},
           {"divergence.window=7", "at least 8"},
           {"divergence.window=4097", "at most 4096"},
           {"divergence.threshold=0", "above 0"},
           {"divergence.threshold=-1", "above 0"},
           {"divergence.threshold=nan", "divergence.threshold"},
           {"divergence.threshold=many", "number"},
           {"divergence.rewind_steps=-1", "at least 0"},
           {"divergence.rewind_steps=4294967296", "at most"},
           {"divergence.skip_batches=9223372036854775808", "divergence.skip_batches"},
           {"divergence.max_rewinds=1001", "at most 1000"},
           {"divergence.replay_steps=-1", "at least 0"},
           {"divergence.digests=perhaps", "true|false"},
           {"divergence.spikes=warn", "did you mean"}}) {
    EXPECT_THAT(refusal({argument}), HasSubstr(words)) << argument;
  }
}

TEST(RunConfig, ABatchRampRisesToTheGlobalBatch) {
  EXPECT_EQ(load({}).config.batches().stages(), 1);
  const std::vector<std::string> ramp = {"train.batch_ramp.from=2", "train.batch_ramp.by=2",
                                         "train.batch_ramp.every=3"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = ramp;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const BatchSchedule batches = load(ramp).config.batches();
  EXPECT_EQ(batches.stages(), 4);
  EXPECT_EQ(batches.size_of(5), 4);
  EXPECT_EQ(batches.size_of(1000), 8);
  EXPECT_EQ(load(with({"train.batch_ramp.from=8"})).config.batches().stages(), 1);
  EXPECT_EQ(load(with({"train.batch_ramp.by=100"})).config.batches().stages(), 2);
  for (const std::string& missing : ramp) {
    std::vector<std::string> two = ramp;
    std::erase(two, missing);
    const std::string key = missing.substr(0, missing.find('='));
    EXPECT_THAT(refusal(two),
                HasSubstr(key + ": a ramp needs from, by and every, each of at least 1"));
  }
  EXPECT_THAT(refusal(with({"train.batch_ramp.from=9"})),
              HasSubstr("9 sequences, but train.global_batch allows 8 at most"));
  EXPECT_THAT(refusal(with({"train.batch_ramp.every=-1"})), HasSubstr("at least 0"));
  EXPECT_THAT(refusal(with({"train.micro_batch=4"})),
              AllOf(HasSubstr("train.batch_ramp.from"),
                    HasSubstr("the batch of 2 sequences from step 1 on can't be cut into "
                              "micro-batches of train.micro_batch 4; the nearest size that works "
                              "is 4: choose multiples of 4")));
  EXPECT_THAT(
      refusal(with({"train.micro_batch=2", "train.batch_ramp.by=3"})),
      AllOf(HasSubstr("train.batch_ramp.by"), HasSubstr("the batch of 5 sequences from step 4 on"),
            HasSubstr("the nearest sizes that work are 4 and 6")));
  EXPECT_THAT(refusal(with({"train.global_batch=10000", "train.batch_ramp.by=1"})),
              HasSubstr("9999 different sizes, and 4096 are allowed"));
}

TEST(RunConfig, EveryStageOfARampSuitsTheLayout) {
  const auto layout = [](const std::vector<std::string>& more, int ranks) {
    std::vector<std::string> all = {"train.global_batch=16", "train.batch_ramp.from=4",
                                    "train.batch_ramp.by=4", "train.batch_ramp.every=10"};
    all.insert(all.end(), more.begin(), more.end());
    const RunConfig config = load(all).config;
    return make_layout(config, ranks, ranks);
  };
  const auto layout_refusal = [&](const std::vector<std::string>& more, int ranks) {
    return message_of<ConfigError>([&] { (void)layout(more, ranks); });
  };
  EXPECT_NO_THROW(layout({}, 4));
  EXPECT_NO_THROW(layout({"train.batch_ramp.from=8", "train.batch_ramp.by=8"}, 8));
  EXPECT_THAT(layout_refusal({"train.micro_batch=2"}, 8),
              HasSubstr("the batch of 4 sequences from step 1 on has to be a multiple of "
                        "train.micro_batch 2 x dp 8 = 16; the nearest size that works is 16"));
  EXPECT_THAT(layout_refusal({"train.batch_ramp.from=8"}, 8),
              AllOf(HasSubstr("the batch of 12 sequences from step 11 on"),
                    HasSubstr("dp 8 = 8; the nearest sizes that work are 8 and 16: choose "
                              "multiples of 8 for train.batch_ramp.from")));
  const std::vector<std::string> interleaved = {"parallel.pp=4", "parallel.schedule=interleaved",
                                                "parallel.virtual_stages=2"};
  EXPECT_NO_THROW(layout(interleaved, 4));
  EXPECT_THAT(layout_refusal(interleaved, 8),
              HasSubstr("train.micro_batch 1 x dp 2 x pp 4 (schedule interleaved) = 8"));
  const RunConfig config = load({"train.global_batch=16", "train.batch_ramp.from=4",
                                 "train.batch_ramp.by=8", "train.batch_ramp.every=10"})
                               .config;
  EXPECT_THAT(describe_layout(make_layout(config, 2, 2), config).front(),
              HasSubstr("2 to 8 micro-batches per replica and step"));
  EXPECT_EQ(describe_ramp(config.batches()),
            "batch ramp: 4 sequences at first, 8 more every 10 steps, 16 from step 21 on");
}

TEST(RunConfig, ARewindNeedsCheckpointsToGoBackTo) {
  const std::vector<std::string> keys = {"divergence.spike", "divergence.not_finite"};
  for (const std::string& key : keys) {
    const std::string rewind = key + "=rewind";
    EXPECT_THAT(refusal({rewind}), HasSubstr("a number of steps above 0"));
    EXPECT_THAT(refusal({rewind, "checkpoint.every=auto"}), HasSubstr(key));
    EXPECT_THAT(refusal({rewind, "checkpoint.every=30", "checkpoint.keep=8"}),
                HasSubstr("needs 9 checkpoints of checkpoint.every 30: checkpoint.keep is 8"));
    EXPECT_NO_THROW(load({rewind, "checkpoint.every=30", "checkpoint.keep=9"}));
    EXPECT_NO_THROW(load({rewind, "checkpoint.every=100", "checkpoint.keep=3"}));
    EXPECT_NO_THROW(load({rewind, "checkpoint.every=7", "divergence.rewind_steps=0"}));
  }
}

TEST(RunConfig, KeysThatContradictEachOther) {
  for (const auto& [arguments, words] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"data.sequence=1025"}, "1025 tokens are longer than the model's context of 1024"},
           {{"train.micro_batch=3"}, "8 sequences can't be cut into micro-batches of 3"},
           {{"checkpoint.keep_best=1"}, "checkpoint.keep_best: needs evaluations: name a dataset"},
           {{"train.early_stop.patience=1"}, "train.early_stop.patience: needs evaluations: name"},
           {{"train.early_stop.patience=1", "data.validation=d"},
            "needs evaluations while training: set train.eval_every"},
           {{"optimizer.name=muon", "parallel.zero=1"}, "muon needs parallel.zero 0"},
           {{"optimizer.name=muon", "parallel.tp=2"}, "muon needs parallel.zero 0"},
           {{"optimizer.name=muon", "parallel.tp=auto"}, "muon needs parallel.zero 0"},
           {{"train.micro_batch=1048576", "train.global_batch=1048576", "data.sequence=512"},
            "more than 2^28 tokens at a time"}}) {
    EXPECT_THAT(refusal(arguments), HasSubstr(words));
  }
  EXPECT_NO_THROW(load({"optimizer.name=muon"}));
  EXPECT_NO_THROW(load({"train.early_stop.patience=1", "data.validation=d", "train.eval_every=2",
                        "checkpoint.keep_best=3"}));
  EXPECT_NO_THROW(
      load({"train.micro_batch=524288", "train.global_batch=524288", "data.sequence=512"}));
}

TEST(RunConfig, ZerosStandForWhatTheyDependOn) {
  const RunConfig zeros = load({}).config;
  EXPECT_EQ(zeros.data.sequence, 1024);
  EXPECT_EQ(zeros.optimizer.schedule.steps, 5);
  EXPECT_EQ(zeros.optimizer.schedule.lr, zeros.optimizer.lr);
  EXPECT_EQ(zeros.checkpoint_dir(), std::filesystem::path("r/checkpoints"));
  const RunConfig given = load({"data.sequence=64", "optimizer.schedule.steps=50",
                                "optimizer.lr=0.5", "checkpoint.dir=c"})
                              .config;
  EXPECT_EQ(given.data.sequence, 64);
  EXPECT_EQ(given.optimizer.schedule.steps, 50);
  EXPECT_EQ(given.optimizer.schedule.lr, 0.5F);
  EXPECT_EQ(given.checkpoint_dir(), std::filesystem::path("c"));
  EXPECT_EQ(given.tokens_per_step(), 8 * 64);
}

TEST(RunConfig, TheOptimizerGetsItsOptions) {
  const OptimizerOptions options =
      load({"optimizer.name=sgd", "optimizer.betas=[0.5,0.75]", "optimizer.eps=0.25",
            "optimizer.weight_decay=0.125", "optimizer.momentum=0.625", "optimizer.nesterov=true",
            "optimizer.ema=0.875"})
          .config.optimizer.options();
  EXPECT_EQ(options.kind, parse_optimizer("sgd"));
  EXPECT_EQ(options.beta1, 0.5F);
  EXPECT_EQ(options.beta2, 0.75F);
  EXPECT_EQ(options.epsilon, 0.25F);
  EXPECT_EQ(options.weight_decay, 0.125F);
  EXPECT_EQ(options.momentum, 0.625F);
  EXPECT_TRUE(options.nesterov);
  EXPECT_EQ(options.ema, 0.875F);
}

TEST(RunConfig, PresetsAreDefaultsThatKeysOverride) {
  const RunConfig config = load({"model.preset=tiny-llama", "model.layers=7"}).config;
  EXPECT_EQ(config.model.layers, 7);
  EXPECT_EQ(config.model.kv_heads, 2);
  EXPECT_EQ(preset_model_config("tiny-llama").layers, 4);
  EXPECT_THAT(refusal({"model.preset=tiny-lama"}),
              AllOf(HasSubstr("unknown preset 'tiny-lama'"), HasSubstr("gpt2-124m, gpt2-1558m"),
                    HasSubstr("did you mean tiny-llama?")));
  EXPECT_THROW((void)preset_model_config("x"), ConfigError);
}

// Every preset is a model, and its name says its size.
TEST(RunConfig, PresetsHaveTheSizesOfTheirNames) {
  std::string last;
  for (const ModelPreset& preset : model_presets()) {
    const std::string name(preset.name);
    EXPECT_LT(last, name);
    last = name;
    const std::size_t dash = name.find('-');
    const double unit = name.ends_with("m") ? 1e6 : 1e9;
    if (name.starts_with("tiny") || name.starts_with("small")) {
      EXPECT_NO_THROW((void)preset_model_config(name));
      continue;
    }
    const double claimed = std::stod(name.substr(dash + 1)) * unit;
    const auto counted = static_cast<double>(parameter_count(preset_model_config(name)));
    EXPECT_NEAR(counted / claimed, 1, 0.25) << name;
  }
}

}  // namespace
}  // namespace trireme
