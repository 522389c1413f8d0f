#include "src/report/run_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunFolder run_named(const std::string& name, const std::string& path) {
  RunFolder run;
  run.name = name;
  run.path = path;
  run.metrics =
      parse_columns(R"({"step": 1, "loss": 2, "step_ms": 500, "time": 1000, "price_per_step": 0.5,)"
                    R"( "cpu_joules_per_step": 7})"
                    "\n"
                    R"({"step": 2, "loss": 2, "step_ms": 500, "time": 1001})");
  return run;
}

TEST(RunSection, RunsOfOneNameAreToldApart) {
  std::vector<RunFolder> runs = {run_named("a", "x/a"), run_named("b", "x/b"),
                                 run_named("a", "y/a")};
  tell_apart(runs);
  EXPECT_EQ(runs[0].name, "a (x/a)");
  EXPECT_EQ(runs[1].name, "b");
  EXPECT_EQ(runs[2].name, "a (y/a)");
}

TEST(RunSection, TheGoodputOfTheComparisonIsThatOfTheRun) {
  RunFolder run = run_named("a", "x/a");
  run.account = Account{};
  run.account->wall = 100;
  run.account->launches = 1;
  run.account->seconds[static_cast<std::size_t>(TimeCause::train)] = 72.1;
  const DocSection section = comparison_section({run, run_named("b", "x/b")});
  const DocTable& table = section.figures.front().table;
  EXPECT_EQ(table.head.back(), "goodput");
  EXPECT_EQ(table.rows[0].back(), "72.1 %");
  EXPECT_THAT(table.rows[1].back(), HasSubstr(" % (no journal)"));
  EXPECT_THAT(goodput_part(run).paragraphs.front(),
              AllOf(HasSubstr("Goodput: 72.1 %"), HasSubstr("There was 1 launch and 0 faults")));
  run.account->launches = 2;
  EXPECT_THAT(goodput_part(run).paragraphs.front(), HasSubstr("There were 2 launches"));
}

TEST(RunSection, PricesHaveTheCurrencyOfTheConfiguration) {
  RunFolder run = run_named("a", "x/a");
  run.settings = parse_config("energy: {currency: CHF}\n", "");
  EXPECT_THAT(energy_part(run).paragraphs,
              testing::Contains("Price by the site's tariff: 0.5 CHF."));
  run.settings.clear();
  EXPECT_THAT(energy_part(run).paragraphs,
              testing::Contains(HasSubstr("config.yaml does not tell")));
}

// A line of fast steps and one of slow steps: the mean over the time is nearer to the slow one.
TEST(RunSection, MeansAreThoseOfTheWholeRun) {
  RunFolder run = run_named("a", "x/a");
  run.metrics = parse_columns(
      R"({"step": 1, "loss": 2, "step_ms": 1000, "tokens_per_s": 100, "cpu_joules_per_step": 30,)"
      R"( "cpu_joules_per_token": 0.3, "cpu_joules_per_checkpoint": 4})"
      "\n"
      R"({"step": 5, "loss": 2, "step_ms": 250, "tokens_per_s": 400, "cpu_joules_per_step": 10,)"
      R"( "cpu_joules_per_token": 0.1})"
      "\n"
      R"({"step": 6, "loss": 2, "step_ms": 2000, "tokens_per_s": 50, "cpu_joules_per_step": 30,)"
      R"( "cpu_joules_per_token": 0.3, "cpu_joules_per_checkpoint": 8})"
      "\n");
  // 600 tokens in 4 s, and 100 J for them.
  EXPECT_EQ(comparison_section({run}).figures.front().table.rows[0][4], "150");
  const std::vector<std::string> row = energy_part(run).tables.front().rows[0];
  EXPECT_THAT(row, ElementsAre("processors (RAPL)", testing::_, "16.667", "0.16667", "6", "6"));
}

TEST(RunSection, AnEmptyJournalIsNoMissingOne) {
  RunFolder run = run_named("a", "x/a");
  EXPECT_THAT(goodput_part(run).remarks, ElementsAre(HasSubstr("was not started by")));
  run.journal = JournalFile::empty;
  EXPECT_THAT(goodput_part(run).remarks, ElementsAre(HasSubstr("has no whole line")));
}

TEST(RunSection, ALogThatIsNotThereIsNotReferredTo) {
  RunFolder run;
  EXPECT_THAT(energy_part(run).remarks, ElementsAre(Not(HasSubstr("log of rank 0"))));
  run.facts = {{"ranks", "2"}};
  EXPECT_THAT(energy_part(run).remarks, ElementsAre(HasSubstr("log of rank 0")));
}

}  // namespace
}  // namespace trireme
