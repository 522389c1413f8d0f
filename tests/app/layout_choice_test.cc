// Tests `parallel: auto`, and the memory of planned layouts as the engine counts it.
#include "src/app/plan/layout_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/plan/planned_run.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class LayoutChoiceTest : public ::testing::Test {
 protected:
  RunConfig config(const std::vector<std::string>& arguments,
                   const std::string& parallel = "auto") {
    const std::filesystem::path file = folder_.path() / "run.yaml";
    write_named_file(file.string(),
                     "model: {preset: gpt2-124m}\n"
                     "data: {train: data, sequence: 1024}\n"
                     "train: {steps: 100, global_batch: 16, micro_batch: 2, device: cpu}\n"
                     "plan: {cluster: test}\nrun: {dir: run}\nparallel: " +
                         parallel + "\n");
    return load_run_config({.file = file, .arguments = arguments, .site = {}}).config;
  }
  std::string refused(const std::vector<std::string>& arguments, const std::string& parallel) {
    return message_of<ConfigError>([&] { (void)config(arguments, parallel); });
  }

  const TempFolder folder_;
};

TEST_F(LayoutChoiceTest, AWordInThePlaceOfTheSectionIsItsLayout) {
  EXPECT_EQ(config({}).parallel.layout, "auto");
  EXPECT_EQ(config({"parallel=given"}).parallel.layout, "given");
  EXPECT_EQ(config({}, "{layout: auto}").parallel.layout, "auto");
  EXPECT_EQ(config({}, "{zero: 1}").parallel.layout, "given");
  EXPECT_THAT(refused({}, "fastest"), HasSubstr("parallel.layout"));
}

TEST_F(LayoutChoiceTest, WhatIsChosenReplacesTheWordOfTheCommandLine) {
  (void)config({});  // writes the file
  ConfigSources sources{.file = folder_.path() / "run.yaml", .arguments = {"parallel=auto"}};
  sources.site = std::filesystem::path();
  sources.chosen = {"parallel.tp=2", "parallel.layout=given"};
  const RunConfig chosen = load_run_config(sources).config;
  EXPECT_EQ(chosen.parallel.layout, "given");
  EXPECT_EQ(chosen.parallel.tp.integer, 2);
}

TEST_F(LayoutChoiceTest, DegreesThatAreGivenAreNotOverruled) {
  EXPECT_THAT(refused({"parallel.tp=2"}, "auto"),
              AllOf(HasSubstr("parallel.tp"), HasSubstr("parallel: auto chooses it")));
  EXPECT_THAT(refused({}, "{layout: auto, zero: 1}"), HasSubstr("parallel.zero"));
}

TEST_F(LayoutChoiceTest, TakesWhatThePlanFindsFastest) {
  const RunConfig run = config({});
  const LayoutChoice choice = choose_layout(run, 8, 4);
  EXPECT_THAT(choice.keys, Contains("parallel.layout=given"));
  EXPECT_THAT(choice.origin, HasSubstr("round numbers"));
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("fastest of"), HasSubstr("s per step")));
  // The chosen keys make a layout of these ranks, and no other layout is faster.
  const auto chosen = load_run_config({.file = folder_.path() / "run.yaml",
                                       .arguments = {},
                                       .chosen = choice.keys,
                                       .chosen_by = choice.origin,
                                       .site = {}});
  const Layout layout = make_layout(chosen.config, 8, 4);
  EXPECT_THAT(chosen.binder.to_yaml(), HasSubstr(choice.origin));
  PlanTask task = plan_task(run);
  task.micro_batch = 2;
  task.recompute = PlanRecompute::none;
  const Cluster cluster = load_cluster("test");
  const PlanResult result = plan_ranks(task, cluster, {8});
  ASSERT_FALSE(result.candidates.empty());
  EXPECT_EQ(plan_layout(chosen.config, layout), result.candidates.front().layout);
  for (const PlanCandidate& candidate : result.candidates) {
    EXPECT_EQ(candidate.layout.micro_batch, 2);
    EXPECT_EQ(candidate.layout.recompute, PlanRecompute::none);
    EXPECT_EQ(candidate.layout.ranks(), 8);
  }
}

TEST_F(LayoutChoiceTest, SaysWhatIsMissingOrDoesNotFit) {
  EXPECT_THAT(
      message_of<ConfigError>([&] { (void)choose_layout(config({"plan.cluster="}), 2, 2); }),
      HasSubstr("plan.cluster"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { (void)choose_layout(config({"model.preset=llama-405b"}), 2, 2); }),
              AllOf(HasSubstr("no layout of 2 ranks works"), HasSubstr("GiB")));
  EXPECT_THAT(
      message_of<ConfigError>([&] { (void)choose_layout(config({"plan.cluster=tost"}), 2, 2); }),
      HasSubstr("tost"));
}

}  // namespace
}  // namespace trireme
