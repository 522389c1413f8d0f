#include "src/app/command/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/command/help_text.h"
#include "src/app/command/number_check.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/words_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    bake_.add_option("KIND", kind_, "of dough").required().check(one_of({"rye", "oat"}));
    bake_.add_option("-n,--loaves", loaves_, "How many loaves").check(integer_within(1, 12));
    bake_.add_option("--heat", heat_, "How hot the oven is")
        .no_default()
        .check(within(100.0, 250.0))
        .type_name("DEGREES");
    bake_.add_option("--size", size_, "width and length").delimiter(',').expected(2);
    bake_.add_option("--seed", seed_, "what goes on top").one_value_per_use();
    bake_.add_flag("--salt", salt_, "or none");
    bake_.add_option("--ovens", ovens_, "How many ovens");
    bake_.footer(
        "Example:\n  bakery bake rye\n"
        "The bread is best on the day on which it was baked, with butter and salt. Let the oven "
        "cool "
        "before you clean it.");
    shop_.require_command();
    shop_.add_command("open", "Sell bread");
    bakery_.add_hidden_command("night", "Bake at night").callback([this] { ran_ += "night "; });
    bake_.callback([this] { ran_ += "bake "; });
    bakery_.callback([this] { ran_ += bakery_.command_given() ? "with" : "without"; });
  }

  void run(const std::string& line) { bakery_.parse(words_of(line)); }
  std::string complaint(const std::string& line) {
    return message_of<UsageError>([&] { run(line); });
  }

  CommandLine bakery_{"Bakes bread.", "bakery"};
  CommandLine& bake_ = bakery_.add_command("bake", "Make loaves");
  CommandLine& shop_ = bakery_.add_command("shop", "Look after the shop");
  std::string kind_;
  int loaves_ = 1;
  int ovens_ = 1;
  double heat_ = 0;
  std::vector<int> size_ = {};
  std::vector<std::string> seed_ = {};
  bool salt_ = false;
  std::string ran_;
};

TEST_F(CommandLineTest, NamesTheOptionsOfTheCommandsGiven) {
  using ::testing::Contains;
  using ::testing::IsSupersetOf;
  EXPECT_THAT(bakery_.option_names(words_of("bake rye")),
              IsSupersetOf({"-h", "--help", "-n", "--loaves", "--salt"}));
  EXPECT_THAT(bakery_.option_names(words_of("shop bake")), Not(Contains("--salt")));
  EXPECT_THAT(bakery_.option_names(words_of("shop open -- bake")), Contains("--salt"));
}

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
  EXPECT_EQ(complaint(""),
            "bakery: name one of its commands\nTry 'bakery --help' for more information.");
}

TEST_F(CommandLineTest, SaysWhatIsWrong) {
  EXPECT_EQ(complaint("bake"),
            "bakery bake: KIND is required\nTry 'bakery bake --help' for more information.");
  EXPECT_THAT(complaint("bake wheat"), HasSubstr("KIND: 'wheat' is not one of rye, oat\n"));
  EXPECT_THAT(complaint("bake rye --heat 300"),
              HasSubstr("--heat: '300' is not a number from 100 to 250\n"));
  EXPECT_THAT(complaint("bake rye --heat hot"), HasSubstr("--heat: 'hot' is not a number"));
  EXPECT_THAT(complaint("bake rye --heat nan"), HasSubstr("--heat: 'nan' is not a number"));
  EXPECT_THAT(complaint("bake rye --ovens two"), HasSubstr("--ovens: 'two' is not a number"));
  EXPECT_THAT(complaint("bake rye --ovens 99999999999999999999"),
              HasSubstr("--ovens: '99999999999999999999' is out of range"));
  EXPECT_THAT(complaint("bake rye --heat"), HasSubstr("--heat: the value is missing\n"));
  EXPECT_THAT(complaint("bake rye --heat 120 --heat 130"),
              HasSubstr("--heat is given more than once\n"));
  EXPECT_THAT(complaint("bake rye --size 1,2,3"), HasSubstr("--size"));
  for (const char* const list : {"1,,2", ",", ",1,2", "1,2,"}) {
    EXPECT_THAT(complaint(fmt::format("bake rye --size {} --salt", list)),
                HasSubstr(fmt::format("bakery bake: --size: a value in '{}' is empty\n", list)));
  }
  EXPECT_THAT(complaint("bake --size=1,,2 rye"), HasSubstr("--size: a value in '1,,2' is empty\n"));
  EXPECT_THAT(complaint("bake rye spelt"), HasSubstr("bakery bake: unexpected argument 'spelt'\n"));
  EXPECT_THAT(complaint("bake rye --burn"), HasSubstr("bakery bake: unknown option '--burn'\n"));
  EXPECT_THAT(complaint("bake rye --loafs=2"),
              HasSubstr("unknown option '--loafs'; did you mean '--loaves'?\n"));
  EXPECT_THAT(complaint("bake rye --loa 3"), HasSubstr("did you mean '--loaves'?"));
  EXPECT_THAT(complaint("bake --loafs"), HasSubstr("unknown option '--loafs'"))
      << "although KIND is missing, too";
  EXPECT_EQ(ran_, "");
}

// A script with an unset variable must not get what it would get without the option.
TEST_F(CommandLineTest, NoFileHasAnEmptyName) {
  std::string file = "default";
  std::string title;
  std::filesystem::path path;
  CommandLine bakery("Bakes bread.", "bakery");
  bakery.add_option("--recipe", file, "how").type_name("FILE");
  bakery.add_option("--out", path, "where to");
  bakery.add_option("--title", title, "what");
  for (const char* option : {"--recipe", "--out"}) {
    EXPECT_THAT(message_of<UsageError>([&] {
                  bakery.parse({option, ""});
                }),
                HasSubstr(std::string(option) + ": the value is empty"));
    EXPECT_THROW(bakery.parse({std::string(option) + "="}), UsageError);
  }
  bakery.parse({"--title", "", "--recipe", "rye"});
  EXPECT_EQ(file, "rye");
}

// The message is about the misspelt command, not about its arguments.
TEST_F(CommandLineTest, SuggestsTheCommandThatWasMeant) {
  EXPECT_EQ(complaint("bkae rye -n 2"),
            "bakery: unknown command 'bkae'; did you mean 'bake'?\n"
            "Try 'bakery --help' for more information.");
  EXPECT_THAT(complaint("fry"), HasSubstr("bakery: unknown command 'fry'\n"));
  EXPECT_THAT(complaint("shop opne"), HasSubstr("bakery shop: unknown command 'opne'; did you"));
  // If there are few commands, the message names all of them.
  EXPECT_THAT(complaint("shop shelf/3"),
              HasSubstr("unknown command 'shelf/3'; did you mean 'open'"));
}

TEST_F(CommandLineTest, TheValueOfAnOptionIsNoCommand) {
  std::string town;
  bakery_.add_option("-t,--town", town, "Where it is");
  for (const char* line : {"--town opne bake rye", "--town=opne bake rye", "-t opne bake rye"}) {
    town.clear();
    run(line);
    EXPECT_EQ(town, "opne") << line;
  }
  EXPECT_THAT(complaint("--town opne bkae"), HasSubstr("unknown command 'bkae'"));
  EXPECT_THAT(complaint("--town=opne bkae"), HasSubstr("unknown command 'bkae'"));
  EXPECT_THAT(complaint("--town"), HasSubstr("--town"));
}

TEST_F(CommandLineTest, HiddenCommandsRunButAreNotShown) {
  run("night");
  EXPECT_EQ(ran_, "night with");
  EXPECT_THAT(help_text(bakery_), Not(HasSubstr("night")));
  EXPECT_THAT(complaint("nigth"), HasSubstr("unknown command 'nigth'\n"));
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
              AllOf(StartsWith("Usage: bakery bake [OPTION]... KIND\n\nMake loaves\n"),
                    HasSubstr("\n  -n, --loaves N          How many loaves (default: 1)\n"),
                    HasSubstr("\n      --heat DEGREES      How hot the oven is\n"),
                    HasSubstr(" Let\nthe oven cool before you clean it.\n"),
                    HasSubstr("\nExamples:\n  bakery bake rye\n")));
  EXPECT_EQ(ran_, "");
}

// The variables of the options live as long as the callback that was not run.
TEST_F(CommandLineTest, ALineCanBeCheckedWithoutRunningIt) {
  CommandLine shop("Sells bread.", "shop");
  CommandLine& sell = shop.add_command("sell", "Sell");
  int sold = 0;
  {
    const auto kinds = std::make_shared<std::vector<std::string>>();
    sell.add_option("--kind", *kinds, "of bread").one_value_per_use();
    sell.callback([&sold, kinds] { sold += static_cast<int>(kinds->size()); });
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(shop.usage_problem({"sell", "--kind", "a rye bread of two pounds"}), "");
    EXPECT_EQ(shop.usage_problem({"sell", "--kidn", "rye"}),
              "shop sell: unknown option '--kidn'; did you mean '--kind'?");
    EXPECT_EQ(shop.usage_problem({"sel"}), "shop: unknown command 'sel'; did you mean 'sell'?");
  }
  testing::internal::CaptureStdout();
  EXPECT_EQ(shop.usage_problem({"sell", "--help"}), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(sold, 0);
  shop.parse({"sell", "--kind", "rye"});
  EXPECT_EQ(sold, 1);
}

TEST_F(CommandLineTest, HelpOfAGroupListsItsCommands) {
  EXPECT_THAT(help_text(bakery_), AllOf(StartsWith("Usage: bakery [OPTION]...\n"
                                                   "       bakery COMMAND [ARGUMENT]...\n"),
                                        HasSubstr("\nCommands:\n  bake                    Make ")));
}

TEST(WrittenFiles, AreNoOtherFilesOfTheLine) {
  const TempFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  write_file_durably(folder.path() / "grain", "rye");
  std::string grain;
  std::string text;
  std::string csv;
  int ground = 0;
  CommandLine mill("Mill", "mill");
  CommandLine& grind = mill.add_command("grind", "Make flour");
  grind.add_option("GRAIN", grain, "What is ground");
  grind.add_option("-J,--json-file", text, "Also write JSON").type_name("FILE").written();
  grind.add_option("--csv", csv, "Also write CSV").type_name("FILE").written();
  grind.callback([&] { ++ground; });
  mill.parse({"grind", path("grain"), "-J", path("a"), "--csv", path("b")});
  EXPECT_EQ(ground, 1);
  EXPECT_THAT(message_of<UsageError>([&] {
                mill.parse({"grind", path("grain"), "-J", path("a"), "--csv", path("./a")});
              }),
              AllOf(StartsWith("mill grind: "), HasSubstr("are the same file")));
  EXPECT_THAT(message_of<UsageError>([&] {
                mill.parse({"grind", path("grain"), "-J", path("./grain")});
              }),
              HasSubstr("--json-file and GRAIN are the same file"));
  EXPECT_THAT(mill.usage_problem({"grind", path("grain"), "--csv", path("grain")}),
              HasSubstr("--csv and GRAIN"));
  EXPECT_EQ(ground, 1);
}

TEST(Filled, BreaksBetweenWords) {
  EXPECT_EQ(filled("one two three four", 9, 2, 0), "one two\n  three\n  four");
  EXPECT_EQ(filled("one two", 9, 2, 6), "one\n  two");
  EXPECT_EQ(filled("a-very-long-word b", 5, 0, 0), "a-very-long-word\nb");
  EXPECT_EQ(filled("one\n\ntwo\nthree", 80, 0, 0), "one\n\ntwo three");
  EXPECT_EQ(filled("", 80, 0, 0), "");
}

TEST_F(CommandLineTest, HiddenOptionsAreTakenButNotShown) {
  CommandLine mill("Grind", "mill");
  CommandLine& grind = mill.add_command("grind", "Make flour");
  int rounds = 0;
  int seen = 0;
  grind.add_option("--rounds", rounds, "Rounds").hidden();
  grind.callback([&] { seen = rounds; });
  mill.parse({"grind", "--rounds", "3"});
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(grind.options().size(), 2U);
  EXPECT_EQ(grind.shown_options().size(), 1U);
  EXPECT_THAT(help_text(grind), Not(HasSubstr("--rounds")));
}

TEST_F(CommandLineTest, TellsOfItsOptions) {
  const std::vector<OptionSummary> options = bake_.options();
  ASSERT_EQ(options.size(), 8U);  // including --help
  EXPECT_EQ(options[0].names, "-h, --help");
  EXPECT_EQ(options[0].type, "");
  EXPECT_TRUE(options[1].positional && options[1].required && !options[1].several);
  EXPECT_EQ(options[1].names, "KIND");
  EXPECT_EQ(options[2].names, "-n, --loaves");
  EXPECT_EQ(options[2].type, "N");
  EXPECT_EQ(options[2].default_value, "1");
  EXPECT_EQ(options[3].type, "DEGREES");
  EXPECT_TRUE(options[4].several);
  ASSERT_EQ(bakery_.commands().size(), 2U);
  EXPECT_EQ(bakery_.commands()[0]->name(), "bake");
  EXPECT_EQ(bakery_.commands()[0]->description(), "Make loaves");
  EXPECT_EQ(bakery_.commands()[0]->path(), "bakery bake");
  EXPECT_EQ(footer_of(*bakery_.commands()[0]).examples, "bakery bake rye\n");
}

}  // namespace
}  // namespace trireme
