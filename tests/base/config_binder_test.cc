#include "src/base/config_binder.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The configuration has one key of each kind.
struct Sample {
  std::string preset;
  std::int64_t steps = 0;
  int layers = 2;
  std::uint64_t seed = 1;
  double lr = 3e-4;
  float eps = 1e-8F;
  bool tie = true;
  std::string precision = "fp32";
  std::filesystem::path dir = "runs/x";
  std::int64_t bucket = 25 << 20;
  std::int64_t kv_heads = 8;
  IntegerOrWord dp = {0, "auto"};
  std::array<double, 2> betas = {0.9, 0.999};
  std::vector<std::string> sources = {};
};

void bind(ConfigBinder& b, Sample& c) {
  b.text("model.preset", c.preset, "a named model");
  b.integer("model.layers", c.layers, "blocks").at_least(1).at_most(1000);
  b.boolean("model.tie", c.tie, "whether the output is the embedding");
  b.integer("model.kv_heads", c.kv_heads, "heads of keys and values").at_least(1);
  b.integer("train.steps", c.steps, "optimizer steps of the whole run").required().at_least(1);
  b.integer("train.seed", c.seed, "seed");
  b.text("train.precision", c.precision, "type").one_of({"fp32", "bf16"});
  b.real("optimizer.lr", c.lr, "peak rate").above(0).below(10);
  b.real("optimizer.eps", c.eps, "epsilon").above(0);
  b.real_pair("optimizer.betas", c.betas, "moments").at_least(0).below(1);
  b.integer_or_word("parallel.dp", c.dp, {"auto"}, "replicas").at_least(1);
  b.bytes("parallel.bucket", c.bucket, "gradient bucket").at_least(1024);
  b.path("run.dir", c.dir, "folder");
  b.texts("data.sources", c.sources, "files");
}

std::string problems(const ConfigBinder& b) {
  try {
    b.finish();
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "none";
}

std::string problems_of(const std::vector<std::string>& arguments) {
  ConfigBinder b;
  Sample c;
  b.add_arguments(arguments);
  bind(b, c);
  return problems(b);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(ConfigBinder, BindsEveryKind) {
  ConfigBinder b;
  Sample c;
  b.add_arguments({"train.steps=5", "train.seed=18446744073709551", "model.layers=7",
                   "model.tie=false", "model.kv_heads=3", "train.precision=bf16",
                   "optimizer.lr=1e-3", "optimizer.eps=.5", "optimizer.betas=[0.8, 0.9]",
                   "parallel.dp=4", "parallel.bucket=1.5MiB", "run.dir=/scratch/a b",
                   "data.sources=one"});
  bind(b, c);
  b.finish();
  EXPECT_EQ(c.steps, 5);
  EXPECT_EQ(c.seed, 18446744073709551U);
  EXPECT_EQ(c.layers, 7);
  EXPECT_FALSE(c.tie);
  EXPECT_EQ(c.kv_heads, 3);
  EXPECT_EQ(c.precision, "bf16");
  EXPECT_EQ(c.lr, 1e-3);
  EXPECT_EQ(c.eps, 0.5F);
  EXPECT_EQ(c.betas, (std::array<double, 2>{0.8, 0.9}));
  EXPECT_EQ(c.dp.integer, 4);
  EXPECT_FALSE(c.dp.is("auto"));
  EXPECT_EQ(c.bucket, 3 << 19);
  EXPECT_EQ(c.dir, "/scratch/a b");
  EXPECT_EQ(c.sources, std::vector<std::string>{"one"});
}

TEST(ConfigBinder, KeepsDefaultsAndSaysSo) {
  ConfigBinder b;
  Sample c;
  b.add_arguments({"train.steps=5"});
  bind(b, c);
  b.finish();
  EXPECT_EQ(c.layers, 2);
  EXPECT_TRUE(c.dp.is("auto"));
  EXPECT_EQ(c.kv_heads, 8);
  EXPECT_EQ(b.origin_of("model.layers"), "default");
  EXPECT_EQ(b.origin_of("train.steps"), "command line");
}

TEST(ConfigBinder, StrongerSourcesWinWhateverTheOrderOfCalls) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "site");
  write(folder.path() / "site/20-b.yaml", "model: {layers: 21}\ntrain: {seed: 22}\n");
  write(folder.path() / "site/10-a.yaml",
        "model: {layers: 11}\ntrain: {seed: 12, steps: 13}\noptimizer: {lr: 0.14}\n");
  write(folder.path() / "site/ignored.txt", "]");
  write(folder.path() / "run.yaml",
        "train:\n  steps: 33\n  precision: bf16\noptimizer: {lr: 0.34, eps: 0.35}\n");
  const char* environment[] = {"HOME=/x",
                               "TRIREME_KERNELS=avx2",
                               "TRIREME_OPTIMIZER__LR=0.44",
                               "TRIREME_OPTIMIZER__EPS=0.45",
                               "TRIREME_OPTIMIZER__BETAS=[0.1, 0.2]",
                               nullptr};
  ConfigBinder b;
  Sample c;
  b.add_arguments({"optimizer.eps=0.55", "optimizer.eps=0.56"});
  b.add_environment(environment);
  b.add_file(folder.path() / "run.yaml");
  b.add_site_files(folder.path() / "site");
  b.include_defaults("model", "layers: 61\nkv_heads: 62\n", "preset tiny");
  bind(b, c);
  b.finish();
  EXPECT_EQ(c.layers, 21);    // a later site file overrides an earlier one and the preset
  EXPECT_EQ(c.kv_heads, 62);  // the preset overrides the default
  EXPECT_EQ(c.seed, 22U);
  EXPECT_EQ(c.steps, 33);
  EXPECT_EQ(c.lr, 0.44);
  EXPECT_EQ(c.eps, 0.56F);
  EXPECT_EQ(c.betas[1], 0.2);
  EXPECT_EQ(b.origin_of("model.layers"), (folder.path() / "site/20-b.yaml").string() + ":1");
  EXPECT_EQ(b.origin_of("model.kv_heads"), "preset tiny:2");
  EXPECT_EQ(b.origin_of("train.steps"), (folder.path() / "run.yaml").string() + ":2");
  EXPECT_EQ(b.origin_of("optimizer.lr"), "environment TRIREME_OPTIMIZER__LR");
}

TEST(ConfigBinder, ReadsWhatIsGivenBeforeBinding) {
  ConfigBinder b;
  EXPECT_EQ(b.given_text("model.preset"), std::nullopt);
  b.add_arguments({"model={preset: tiny, layers: 3}"});
  EXPECT_EQ(b.given_text("model.preset"), "tiny");
}

TEST(ConfigBinder, NamesFileLineKeyValueAndWhatIsAllowed) {
  const TempFolder folder;
  const auto file = folder.path() / "run.yaml";
  write(file, "train:\n  steps: many\n  precision: fp16\n");
  ConfigBinder b;
  Sample c;
  b.add_file(file);
  bind(b, c);
  const std::string what = problems(b);
  EXPECT_THAT(what,
              HasSubstr(file.string() +
                        ":2: train.steps: many is not allowed; allowed: integer, at least 1"));
  EXPECT_THAT(what, HasSubstr(":3: train.precision: fp16 is not allowed; allowed: fp32|bf16"));
  EXPECT_THAT(what, HasSubstr("2 problems"));
}

TEST(ConfigBinder, RefusesEachWrongValue) {
  for (const char* wrong : {"model.layers=0",
                            "model.layers=1001",
                            "model.layers=3000000000",
                            "model.layers=1.5",
                            "model.layers=[1]",
                            "model.layers=",
                            "model.layers=7 ",
                            "model.layers=0x7",
                            "model.layers=07",
                            "train.steps=010",
                            "parallel.dp=02",
                            "optimizer.lr=01",
                            "model.tie=yes",
                            "model.kv_heads=0",
                            "model.kv_heads=none",
                            "train.seed=-1",
                            "train.steps=1e3",
                            "train.precision=",
                            "optimizer.lr=nan",
                            "optimizer.lr=inf",
                            "optimizer.lr=1e999",
                            "optimizer.lr=0",
                            "optimizer.lr=10",
                            "optimizer.betas=0.9",
                            "optimizer.betas=[0.9]",
                            "optimizer.betas=[0.9, 1]",
                            "optimizer.betas=[0.9, x]",
                            "optimizer.betas=[-1, 0.9]",
                            "parallel.dp=some",
                            "parallel.dp=0",
                            "parallel.bucket=12",
                            "parallel.bucket=10 apples",
                            "run.dir=[a]",
                            "data.sources=~",
                            "train.seed={}",
                            "model.layers={}",
                            "model.tie={}",
                            "model.kv_heads={}",
                            "train.precision={}",
                            "optimizer.lr={}",
                            "optimizer.betas={}",
                            "parallel.dp={}",
                            "parallel.bucket={}",
                            "run.dir={}",
                            "data.sources={}"}) {
    const std::string key(wrong, std::string(wrong).find('='));
    EXPECT_THAT(problems_of({"train.steps=5", wrong}),
                AllOf(HasSubstr("command line: " + key + ": "),
                      HasSubstr("is not allowed; allowed: "), Not(HasSubstr("problems"))))
        << wrong;
  }
  EXPECT_EQ(problems_of({"train.steps=5"}), "none");
}

TEST(ConfigBinder, WrongValuesLeaveTheDefault) {
  ConfigBinder b;
  Sample c;
  b.add_arguments({"optimizer.lr=fast", "model.layers=x"});
  bind(b, c);
  EXPECT_EQ(c.lr, 3e-4);
  EXPECT_EQ(c.layers, 2);
}

TEST(ConfigBinder, AnEmptyValueTakesATextBack) {
  for (const char* unset : {"run.dir=", "run.dir=~", "run.dir=null"}) {
    const TempFolder folder;
    write(folder.path() / "run.yaml", "train: {steps: 1}\nrun: {dir: there}\n");
    ConfigBinder b;
    Sample c;
    b.add_file(folder.path() / "run.yaml");
    b.add_arguments({unset});
    bind(b, c);
    EXPECT_EQ(problems(b), "none") << unset;
    EXPECT_TRUE(c.dir.empty()) << unset;
    EXPECT_EQ(b.origin_of("run.dir"), "command line");
    EXPECT_THAT(b.to_yaml(), HasSubstr("dir: \"\""));
  }
}

TEST(ConfigBinder, AnEmptyValueIsNoneWhereOneIsRequired) {
  ConfigBinder b;
  std::filesystem::path dir;
  b.add_arguments({"run.dir="});
  b.path("run.dir", dir, "folder").required();
  EXPECT_THAT(problems(b), HasSubstr("run.dir is missing"));
}

TEST(ConfigBinder, KnowsUnknownKeys) {
  EXPECT_THAT(problems_of({"train.steps=5", "train.stesp=6"}),
              HasSubstr("train.stesp: unknown key (its value: 6); did you mean train.steps?"));
  EXPECT_THAT(problems_of({"model.seed=6"}), HasSubstr("did you mean train.seed?"));
  EXPECT_THAT(problems_of({"train.steps=5", "zzzzzzzz.yyyyyyyy=6"}),
              AllOf(HasSubstr("unknown key"), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(problems_of({"train.steps=5", "optimizer=adamw"}),
              HasSubstr("optimizer is a section"));
  EXPECT_THAT(problems_of({"encryption.x=hunter2", "pin=hunter2"}), Not(HasSubstr("hunter2")));
  EXPECT_THAT(problems_of({"train.steps=5", "run.dir.x=1"}), HasSubstr("run.dir is not a section"));
  EXPECT_THAT(problems_of({}),
              HasSubstr("train.steps is missing: optimizer steps of the whole run"));
}

TEST(ConfigBinder, AnEmptySectionIsFine) {
  ConfigBinder b;
  Sample c;
  const TempFolder folder;
  write(folder.path() / "run.yaml", "model:\ntrain: {steps: 3}\noptimizer: {}\n");
  b.add_file(folder.path() / "run.yaml");
  b.add_arguments({"parallel={}"});
  bind(b, c);
  EXPECT_EQ(problems(b), "none");
}

TEST(ConfigBinder, AnEmptyMappingIsNoValue) {
  ConfigBinder b;
  Sample c;
  const TempFolder folder;
  const auto file = folder.path() / "run.yaml";
  write(file, "train: {steps: 3}\noptimizer:\n  lr: {}\nnothing: {}\n");
  const char* const environment[] = {"TRIREME_MODEL__LAYERS={}", nullptr};
  b.add_file(file);
  b.add_environment(environment);
  bind(b, c);
  EXPECT_THAT(
      problems(b),
      AllOf(HasSubstr(file.string() + ":3: optimizer.lr: {} is not allowed; allowed: number"),
            HasSubstr(file.string() + ":4: nothing: unknown key (its value: {})"),
            HasSubstr("environment TRIREME_MODEL__LAYERS: model.layers: {} is not allowed")));
}

TEST(ConfigBinder, TellsTenProblemsAndCountsTheRest) {
  std::vector<std::string> arguments = {"train.steps=1"};
  for (int i = 0; i < 14; ++i) {
    arguments.push_back("qqqqqqqq" + std::to_string(i) + ".wwwwwwww=" + std::string(500, 'x'));
  }
  const std::string what = problems_of(arguments);
  EXPECT_THAT(what, AllOf(HasSubstr("14 problems"), HasSubstr("and 4 more")));
  EXPECT_LT(what.size(), 3000U);
}

TEST(ConfigBinder, CatchesAVariableWithOneUnderscore) {
  const char* environment[] = {"TRIREME_TRAIN_STEPS=5", "TRIREME_SITE_DIR=/x",
                               "TRIREME_FAULTS=", nullptr};
  ConfigBinder b;
  Sample c;
  b.add_arguments({"train.steps=5"});
  b.add_environment(environment);
  bind(b, c);
  EXPECT_EQ(problems(b),
            "environment TRIREME_TRAIN_STEPS: to set train.steps write TRIREME_TRAIN__STEPS");
}

TEST(ConfigBinder, RoomsAddProblemsOfTheirOwn) {
  ConfigBinder b;
  Sample c;
  b.add_arguments({"train.steps=5"});
  bind(b, c);
  b.refuse("train.steps", "must be a multiple of 2");
  EXPECT_EQ(problems(b), "command line: train.steps: must be a multiple of 2");
}

TEST(ConfigBinder, BadArgumentsAndFiles) {
  ConfigBinder b;
  EXPECT_THROW(b.add_arguments({"train.steps"}), ConfigError);
  EXPECT_THROW(b.add_arguments({"=5"}), ConfigError);
  EXPECT_THROW(b.add_arguments({"a=[1"}), ConfigError);
  EXPECT_THROW(b.add_file("/nowhere/run.yaml"), NotFound);
  const TempFolder folder;
  EXPECT_THROW(b.add_file(folder.path()), ConfigError);
  b.add_site_files(folder.path() / "absent");
  std::ofstream(folder.path() / "big.yaml") << std::string(kMaxConfigBytes + 1, ' ');
  EXPECT_THROW(b.add_file(folder.path() / "big.yaml"), ConfigError);
  std::filesystem::create_directory(folder.path() / "site");
  std::filesystem::rename(folder.path() / "big.yaml", folder.path() / "site/big.yaml");
  EXPECT_THROW(b.add_site_files(folder.path() / "site"), ConfigError);
}

TEST(ConfigBinder, TheResolvedConfigurationLoadsAgain) {
  ConfigBinder b;
  Sample c;
  b.add_arguments({"train.steps=5", "optimizer.betas=[0.5, 0.25]", "run.dir=a: # \"b\"",
                   "parallel.bucket=64K", "optimizer.lr=0.1"});
  b.include_defaults("model", "layers: 12\n", "preset\nwith a line end");
  bind(b, c);
  b.finish();
  const TempFolder folder;
  write(folder.path() / "config.yaml", b.to_yaml());
  ConfigBinder again;
  Sample d;
  again.add_file(folder.path() / "config.yaml");
  bind(again, d);
  again.finish();
  EXPECT_EQ(d.steps, 5);
  EXPECT_EQ(d.layers, 12);
  EXPECT_EQ(d.betas, c.betas);
  EXPECT_EQ(d.dir, c.dir);
  EXPECT_EQ(d.bucket, 65536);
  EXPECT_EQ(d.lr, 0.1);
  EXPECT_EQ(d.eps, c.eps);
  EXPECT_EQ(d.kv_heads, 8);
  EXPECT_TRUE(d.dp.is("auto"));
  ASSERT_EQ(again.resolved().size(), b.resolved().size());
  for (std::size_t i = 0; i < b.resolved().size(); ++i) {
    EXPECT_EQ(again.resolved()[i].value.to_yaml(), b.resolved()[i].value.to_yaml());
  }
  EXPECT_THAT(b.to_yaml(), HasSubstr("  steps: 5  # command line\n"));
}

TEST(ConfigBinder, AKeyBoundTwiceIsADefect) {
  ConfigBinder b;
  int value = 0;
  b.integer("a.b", value, "x");
  EXPECT_THROW(b.integer("a.b", value, "x"), InternalError);
}

TEST(SiteFolder, ComesFromTheEnvironment) {
  ::setenv("TRIREME_SITE_DIR", "/usr", 1);
  EXPECT_EQ(site_folder(), "/usr");
  ::setenv("TRIREME_SITE_DIR", "/no/such/folder", 1);
  EXPECT_THAT(message_of<ConfigError>([] { (void)site_folder(); }),
              HasSubstr("TRIREME_SITE_DIR is /no/such/folder, which is not a folder"));
  ::unsetenv("TRIREME_SITE_DIR");
  EXPECT_EQ(site_folder(), "/etc/trireme");
}

}  // namespace
}  // namespace trireme
