#include "src/base/fault_plan.h"

#include <cerrno>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "tests/base/some_fault_sites.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = FaultAction::Kind;

std::vector<FaultRule> parse_plan(std::string_view text) {
  return parse_fault_plan(text, kSomeFaultSites);
}

std::string plan_refusal(const std::string& plan) {
  return message_of<ConfigError>([&] { parse_plan(plan); });
}

TEST(FaultPlan, ReadsRules) {
  const auto rules = parse_plan(
      "ckpt.rename@2:0:1:kill,step.end:*:3+:sleep=0.25,"
      "file.write:1:*:errno=ENOSPC,step.end:7:2:exit=3");
  ASSERT_THAT(rules, SizeIs(4));
  EXPECT_EQ(rules[0], (FaultRule{"ckpt.rename", 2, 0, 1, false, {Kind::kill, 0, 0}}));
  EXPECT_EQ(rules[1], (FaultRule{"step.end", 0, -1, 3, true, {Kind::sleep, 0, 0.25}}));
  EXPECT_EQ(rules[2], (FaultRule{"file.write", 0, 1, 1, true, {Kind::error, ENOSPC, 0}}));
  EXPECT_EQ(rules[3], (FaultRule{"step.end", 0, 7, 2, false, {Kind::exit, 3, 0}}));
  EXPECT_THAT(parse_plan(""), SizeIs(0));
}

TEST(FaultPlan, ReadsAFile) {
  const TempFolder folder;
  const auto path = folder.path() / "plan.yaml";
  std::ofstream(path) << "# a drill\nfaults:\n  - \"step.end:0:1:stop\"\n  - data.read:*:2:throw\n";
  const auto rules = parse_plan("@" + path.string());
  ASSERT_THAT(rules, SizeIs(2));
  EXPECT_EQ(to_text(rules[0]), "step.end:0:1:stop");
  EXPECT_EQ(to_text(rules[1]), "data.read:*:2:throw");
  std::ofstream(path) << "fault: [a]\n";
  EXPECT_THAT(plan_refusal("@" + path.string()),
              AllOf(HasSubstr("plan.yaml:1"), HasSubstr("faults:")));
  EXPECT_THROW(parse_plan("@" + (folder.path() / "none").string()), NotFound);
}

TEST(FaultPlan, SaysWhatIsWrong) {
  EXPECT_THAT(plan_refusal("ckpt.renam:0:1:kill"),
              AllOf(HasSubstr("ckpt.renam:0:1:kill"), HasSubstr("did you mean ckpt.rename?")));
  EXPECT_THAT(plan_refusal("step.end:0:1:kil"), HasSubstr("did you mean kill?"));
  EXPECT_THAT(plan_refusal("step.end:0:1"), HasSubstr("3 parts"));
  EXPECT_THAT(plan_refusal("step.end:0:1:kill:x"), HasSubstr("5 parts"));
  EXPECT_THAT(plan_refusal("step.end:-1:1:kill"), HasSubstr("'-1' is not a rank"));
  EXPECT_THAT(plan_refusal("step.end:0:0:kill"), HasSubstr("'0' is not a number of passages"));
  EXPECT_THAT(plan_refusal("step.end:0:99999999999999999999:kill"),
              HasSubstr("is not a number of passages"));
  EXPECT_THAT(plan_refusal("step.end@0:0:1:kill"), HasSubstr("'0' is not an attempt"));
  EXPECT_THAT(plan_refusal("step.end:0:1:sleep"), HasSubstr("sleep needs a value"));
  EXPECT_THAT(plan_refusal("step.end:0:1:kill=9"), HasSubstr("kill takes no value"));
  EXPECT_THAT(plan_refusal("step.end:0:1:sleep=nan"), HasSubstr("expected a number of seconds"));
  EXPECT_THAT(plan_refusal("step.end:0:1:sleep=-1"), HasSubstr("expected a number of seconds"));
  EXPECT_THAT(plan_refusal("step.end:0:1:exit=256"), HasSubstr("0 to 255"));
  EXPECT_THAT(plan_refusal("step.end:0:1:errno=ENOTHING"), HasSubstr("the name of an error"));
  EXPECT_THAT(plan_refusal("step.end:0:1:corrupt"), HasSubstr("no data that could be corrupted"));
  EXPECT_THAT(plan_refusal("load.shard:0:1:nan"), HasSubstr("no numbers that could be changed"));
  EXPECT_THAT(plan_refusal("step.end:0:1:scale=2"), HasSubstr("no numbers that could be changed"));
  EXPECT_THAT(plan_refusal("step.gradient:0:1:scale"), HasSubstr("scale needs a value"));
  EXPECT_THAT(plan_refusal("step.gradient:0:1:scale=inf"), HasSubstr("expected a factor"));
  EXPECT_THAT(plan_refusal("step.gradient:0:1:scale=1e3x"), HasSubstr("expected a factor"));
  EXPECT_THAT(plan_refusal("file.sync:0:1:short"), HasSubstr("could be cut short"));
  EXPECT_THAT(plan_refusal("step.end:0:1:kill,"), HasSubstr("1 part instead of 4"));
}

TEST(FaultPlan, CannotForgeLines) {
  for (const char* const plan : {"x\ntrireme: OK", "step.end:0:1:x\ntrireme: OK"}) {
    const std::string refusal = plan_refusal(plan);
    EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
    EXPECT_THAT(refusal, HasSubstr("x\\ntrireme: OK"));
  }
}

TEST(FaultPlan, BoundsItsLength) {
  std::string plan = "step.end:0:1:kill";
  for (std::size_t i = 0; i < kMaxFaultRules; ++i) {
    plan += ",step.end:0:1:kill";
  }
  EXPECT_THAT(plan_refusal(plan), HasSubstr("at most 1000"));
}

// Mutations of a good plan either throw or give rules that survive a round trip.
TEST(FaultPlan, SurvivesAnyBytes) {
  const std::string good =
      "ckpt.rename@2:*:3+:errno=EIO,load.shard:1:*:corrupt,"
      "step.gradient:0:3:scale=1e4";
  const std::string bytes(":@,=*+-0129.exits\0\n\"[]~", 24);
  int accepted = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::string plan = good;
    for (std::uint64_t change = 0; change <= i % 3; ++change) {
      const std::uint64_t chance = mix64(7 * i + change);
      const std::size_t at = chance % plan.size();
      const char byte = bytes[(chance >> 20) % bytes.size()];
      switch ((chance >> 40) % 3) {
        case 0:
          plan[at] = byte;
          break;
        case 1:
          plan.insert(at, 1, byte);
          break;
        default:
          plan.erase(at, 1 + (chance >> 50) % 5);
      }
    }
    try {
      for (const FaultRule& rule : parse_plan(plan)) {
        ASSERT_EQ(parse_plan(to_text(rule)).at(0), rule) << plan;
        ++accepted;
      }
    } catch (const ConfigError&) {
    } catch (const NotFound&) {  // the text began with '@'
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace trireme
