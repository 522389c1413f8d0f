#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/app/plan/plan_command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string plan_schedule(std::vector<std::string> arguments) {
  CommandLine app("", "trireme");
  AppContext context;
  add_plan_command(app, context);
  arguments.insert(arguments.begin(), {"plan", "schedule"});
  testing::internal::CaptureStdout();
  try {
    app.parse(arguments);
  } catch (...) {
    (void)testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

TEST(PlanSchedule, PrintsTheBubbleAndThePeak) {
  const std::string table = plan_schedule({"--stages", "4", "--micro-batches", "8"});
  EXPECT_THAT(table,
              AllOf(HasSubstr("1f1b: 4 stages, 8 micro-batches\n"),
                    HasSubstr("total time 33; bubble 27.3 % of the time, 37.5 % of the work\n"),
                    HasSubstr("\n    0         24          9    27.3            4\n")));
}

TEST(PlanSchedule, TheSameAsJson) {
  const auto parsed = nlohmann::json::parse(
      plan_schedule({"--schedule", "interleaved", "--stages", "2", "--chunks", "2",
                     "--micro-batches", "4", "--tied", "--tie", "0", "--json"}));
  EXPECT_EQ(parsed["schema"], 1);
  EXPECT_EQ(parsed["schedule"], "interleaved");
  EXPECT_EQ(parsed["tied"], true);
  EXPECT_EQ(parsed["time"], 13.5);
  EXPECT_EQ(parsed["bubble_of_work"], 0.125);
  ASSERT_EQ(parsed["by_stage"].size(), 2U);
  EXPECT_EQ(parsed["by_stage"][0]["peak_live"], 5);
  EXPECT_EQ(parsed["by_stage"][1]["idle"], 1.5);
}

TEST(PlanSchedule, DrawsEverySchedule) {
  const TempFolder folder;
  for (const char* schedule : {"gpipe", "1f1b", "zero_bubble", "interleaved"}) {
    const std::string out = (folder.path() / "schedule.svg").string();
    plan_schedule({"--schedule", schedule, "--chunks",
                   std::string(schedule) == "interleaved" ? "2" : "1", "--schedule-svg", out,
                   "--tied"});
    EXPECT_THAT(read_file(out),
                AllOf(HasSubstr(std::string(">") + schedule + ": 4 stages, 8 micro-batches"),
                      HasSubstr("tied embeddings<"), HasSubstr("bubble: ")));
  }
}

TEST(PlanSchedule, RefusesWhatItCannotSimulate) {
  const TempFolder folder;
  const auto refused = [](const std::vector<std::string>& arguments) {
    return message_of<ConfigError>([&] { plan_schedule(arguments); });
  };
  EXPECT_THAT(refused({"--schedule", "2f2b"}), HasSubstr("is not one of gpipe, 1f1b"));
  EXPECT_THAT(refused({"--chunks", "2"}),
              HasSubstr("the schedule 1f1b has 1 virtual stage per rank"));
  EXPECT_THAT(refused({"--schedule", "interleaved"}), HasSubstr("at least 2 virtual stages"));
  EXPECT_THAT(refused({"--schedule", "interleaved", "--chunks", "2", "--micro-batches", "9"}),
              HasSubstr("a multiple of the 4 stages, but it is 9: use 8 or 12 micro-batches"));
  EXPECT_THAT(refused({"--stages", "4096", "--micro-batches", "1000000"}),
              HasSubstr("= 4096000000 forward passes, but at most 1000000"));
  EXPECT_THAT(refused({"--schedule-svg", (folder.path() / "schedule.png").string()}),
              HasSubstr("must end in .svg"));
  for (const char* wrong : {"0", "-1", "nan", "inf", "1e7", "1e400"}) {
    EXPECT_THAT(refused({"--forward", wrong}), HasSubstr("--forward")) << wrong;
  }
  EXPECT_THAT(refused({"--transfer", "-0.5"}), HasSubstr("--transfer -0.5"));
  EXPECT_THROW(plan_schedule({"--stages", "0"}), UsageError);
  EXPECT_THROW(plan_schedule({"--stages", "99999999999"}), UsageError);
  EXPECT_THROW(plan_schedule({"--forward", "fast"}), UsageError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace trireme
