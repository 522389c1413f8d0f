#include "src/app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/number_check.h"
#include "tests/support/message_of.h"
#include "tests/support/words_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    bake_.add_option("KIND", kind_, "of dough").required().check(one_of({"rye", "oat"}));
    bake_.add_option("-n,--loaves", loaves_, "how many")
        .check(integer_within(1, 12))
        .show_default();
    bake_.add_option("--heat", heat_, "degrees").check(within(100.0, 250.0));
    bake_.add_option("--size", size_, "width and length").delimiter(',').expected(2);
    bake_.add_option("--seed", seed_, "what goes on top").one_value_a_use();
    bake_.add_flag("--salt", salt_, "or none");
    bake_.footer("Example:\n  bakery bake rye");
    bake_.callback([this] { ran_ += "bake "; });
    bakery_.callback([this] { ran_ += bakery_.command_given() ? "with" : "without"; });
  }

  void run(const std::string& line) { bakery_.parse(words_of(line)); }
  std::string complaint(const std::string& line) {
    return message_of<UsageError>([&] { run(line); });
  }

  CommandLine bakery_{"Bakes bread.", "bakery"};
  CommandLine& bake_ = bakery_.add_command("bake", "Make loaves");
  std::string kind_;
  int loaves_ = 1;
  double heat_ = 0;
  std::vector<int> size_ = {};
  std::vector<std::string> seed_ = {};
  bool salt_ = false;
  std::string ran_;
};

TEST_F(CommandLineTest, FillsInValuesAndRunsTheInnermostFirst) {
  run("bake rye --seed poppy --size 10,30 -n 3 --heat 220.5 --salt --seed sesame");
  EXPECT_EQ(kind_, "rye");
  EXPECT_EQ(loaves_, 3);
  EXPECT_EQ(heat_, 220.5);
  EXPECT_THAT(size_, ElementsAre(10, 30));
  EXPECT_THAT(seed_, ElementsAre("poppy", "sesame"));
  EXPECT_TRUE(salt_);
  EXPECT_EQ(ran_, "bake with");
}

TEST_F(CommandLineTest, ACommandMayBeLeftOutUnlessRequired) {
  run("");
  EXPECT_EQ(ran_, "without");
  bakery_.require_command();
  EXPECT_THAT(complaint(""), HasSubstr("A subcommand is required"));
}

TEST_F(CommandLineTest, SaysWhatIsWrong) {
  EXPECT_EQ(complaint("bake"), "KIND is required\nRun with --help for more information.");
  EXPECT_THAT(complaint("bake wheat"), HasSubstr("wheat not in {rye,oat}"));
  EXPECT_THAT(complaint("bake rye --heat 300"), HasSubstr("300 not in range 100.000000 to 250"));
  EXPECT_THAT(complaint("bake rye --size 1,2,3"), HasSubstr("--size"));
  EXPECT_THAT(complaint("bake rye --burn"), HasSubstr("--burn"));
  EXPECT_THAT(complaint("fry"), HasSubstr("fry"));
  EXPECT_EQ(ran_, "");
}

TEST_F(CommandLineTest, IntegersArePlainDecimals) {
  for (const char* wrong :
       {"0", "13", "-1", "+1", "010", "0x2", "1.0", "2x", "99999999999999999999"}) {
    EXPECT_THAT(complaint(std::string("bake rye --loaves ") + wrong),
                HasSubstr(std::string("'") + wrong + "' is not an integer from 1 to 12"));
  }
  EXPECT_EQ(any_seed().complaint("18446744073709551615"), "");
  EXPECT_NE(any_seed().complaint("18446744073709551616"), "");
}

TEST_F(CommandLineTest, HelpIsNoErrorAndRunsNothing) {
  testing::internal::CaptureStdout();
  run("bake --help");
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("Make loaves"), HasSubstr("-n,--loaves INT:1..12=1"),
                    HasSubstr("KIND TEXT:{rye,oat} REQUIRED"), HasSubstr("bakery bake rye")));
  EXPECT_EQ(ran_, "");
}

TEST_F(CommandLineTest, TellsOfItsOptions) {
  const std::vector<OptionSummary> options = bake_.options();
  ASSERT_EQ(options.size(), 7U);  // and --help
  EXPECT_EQ(options[0].names, "-h,--help");
  EXPECT_EQ(options[0].type, "");
  EXPECT_TRUE(options[1].positional && options[1].required && !options[1].several);
  EXPECT_EQ(options[1].names, "KIND");
  EXPECT_EQ(options[2].names, "-n,--loaves");
  EXPECT_EQ(options[2].type, "INT:1..12");
  EXPECT_EQ(options[2].default_value, "1");
  EXPECT_TRUE(options[4].several);
  ASSERT_EQ(bakery_.commands().size(), 1U);
  EXPECT_EQ(bakery_.commands()[0]->name(), "bake");
  EXPECT_EQ(bakery_.commands()[0]->description(), "Make loaves");
  EXPECT_EQ(bakery_.commands()[0]->footer(), "Example:\n  bakery bake rye");
}

}  // namespace
}  // namespace trireme
