#include "src/report/run_folder.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/report/run_section.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunFolderTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((run_ / name).parent_path());
    std::ofstream(run_ / name) << text;
  }
  RunFolder read() const { return read_run_folder(run_, false); }
  std::string page() const { return to_html({"Report", {}, {run_section(read(), "stopped")}}); }

  TempFolder folder_;
  const fs::path run_ = folder_.path() / "first";
};

TEST_F(RunFolderTest, AnEmptyFolderIsNoRunAndMakesNothingUp) {
  fs::create_directories(run_);
  EXPECT_FALSE(is_run_folder(run_));
  const RunFolder run = read();
  EXPECT_TRUE(run.metrics.empty());
  EXPECT_THAT(run.remarks, Contains(HasSubstr("There is no metrics.jsonl")));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("There is no config.yaml")));
  const std::string text = page();
  EXPECT_THAT(text,
              HasSubstr("There is no journal.jsonl: the run was not started by trireme launch"));
  EXPECT_THAT(text, HasSubstr("No energy was measured"));
  EXPECT_THAT(text, Not(HasSubstr("<svg")));
}

TEST_F(RunFolderTest, ReadsWhatARunLeaves) {
  write("config.yaml",
        "model:\n  layers: 2  # default\nrun:\n  dir: a  # b\n  name: \"my run\"  # c\n");
  write(
      "metrics.jsonl",
      "{\"step\": 10, \"loss\": 3, \"step_ms\": 100, \"time\": 1000, \"tokens_per_s\": 5, "
      "\"cpu_joules_per_step\": 7, \"co2_grams_per_step\": 0.5}\n"
      "{\"step\": 20, \"loss\": 2, \"step_ms\": 100, \"checkpoint_stall_ms\": 50, \"time\": 1003, "
      "\"tokens_per_s\": 6, \"cpu_joules_per_step\": 9, \"co2_grams_per_step\": 0.5}\n{\"st");
  write(
      "logs/rank-00000.jsonl",
      "{\"event\":\"start\",\"host\":\"n1\",\"ranks\":2,\"rank\":0,\"level\":\"info\",\"time\":1}\n"
      "{\"event\":\"step\",\"step\":10}\n"
      "{\"event\":\"resumed\",\"step\":10}\n"
      "{\"event\":\"straggler\",\"step\":11,\"rank\":1,\"host\":\"n1\",\"of_peers\":1.5,\"time\":5}"
      "\n"
      "{\"event\":\"memory_measured\",\"ranks\":[{\"program\":100,\"total\":300,\"weights\":200},"
      "{\"program\":1,\"total\":3,\"weights\":2}]}\n");
  write("exit_reason.json", "{\"code\": 75, \"kind\": \"signal\", \"message\": \"asked to stop\"}");
  EXPECT_TRUE(is_run_folder(run_));
  const RunFolder run = read();
  EXPECT_EQ(run.name, "my run");
  EXPECT_THAT(run.metrics.step, ElementsAre(10, 20));
  EXPECT_THAT(run.restarts, ElementsAre(10));
  EXPECT_THAT(run.remarks, ElementsAre(HasSubstr("the last line is incomplete")));
  EXPECT_EQ(run.exit_reason, "code 75: asked to stop");
  EXPECT_EQ(run.warnings.size(), 1U);
  ASSERT_TRUE(run.memory);
  EXPECT_THAT(run.memory->parts, ElementsAre("program", "weights"));
  EXPECT_THAT(run.memory->bytes, ElementsAre(ElementsAre(100, 200), ElementsAre(1, 2)));
  // 1.5 of the 4 s between the first step, which began at 999 s, and the last line are useful.
  EXPECT_DOUBLE_EQ(useful_share(run.metrics), 1.5 / 4);
  const std::string text = page();
  for (const char* const words :
       {"Run my run", "code 75: asked to stop", "37.5 %", "rank 1 on n1",
        "Carbon dioxide by the site's factor: 10 g", ">restart at 10<", "processors (RAPL)"}) {
    EXPECT_THAT(text, HasSubstr(words)) << words;
  }
}

TEST_F(RunFolderTest, TheJournalGivesATimelineOfAttempts) {
  write("metrics.jsonl", "");
  const auto event = [](double time, const std::string& name, const std::string& more) {
    return "{\"time\": " + std::to_string(time) + ", \"clock\": " + std::to_string(time - 1000) +
           ", \"launch\": \"ab\", \"event\": \"" + name + "\"" + more + "}\n";
  };
  write("journal.jsonl",
        event(1000, "begin", "") +
            event(1001, "launch", ", \"attempt\": 1, \"ranks\": 2, \"nodes\": [\"n1\"]") +
            event(1020, "attempt_end",
                  ", \"attempt\": 1, \"cause\": \"process_death\", \"code\": 76, \"what\": "
                  "\"<rank> 0 died\", \"launched\": 1, \"detected\": 20") +
            event(1025, "launch", ", \"attempt\": 2, \"ranks\": 2, \"nodes\": [\"n1\"]") +
            "{\"time\"\n");
  const RunFolder run = read();
  ASSERT_TRUE(run.account);
  ASSERT_EQ(run.attempts.size(), 2U);
  EXPECT_EQ(run.attempts[0].ended, 1020);
  EXPECT_FALSE(run.attempts[1].ended);
  EXPECT_THAT(run.remarks, Contains(HasSubstr("journal.jsonl: 1 damaged line (line 5) left out")));
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("Timeline of attempts"));
  EXPECT_THAT(text, HasSubstr("&lt;rank&gt; 0 died"));
  EXPECT_THAT(text, HasSubstr("journal.jsonl is damaged or lacks events"));
}

TEST_F(RunFolderTest, AnEmptyJournalIsNoMissingOne) {
  write("metrics.jsonl", "{\"step\": 1}\n");
  EXPECT_THAT(page(), HasSubstr("There is no journal.jsonl"));
  write("journal.jsonl", "");
  EXPECT_THAT(page(), HasSubstr("journal.jsonl has no whole line"));
}

TEST_F(RunFolderTest, FilesThatLeadOutOfTheRunAreLeftOut) {
  write("../private.yaml", "canary: 1\n");
  write("metrics.jsonl", "{\"step\": 1}\n");
  fs::create_symlink("../private.yaml", run_ / "config.yaml");
  EXPECT_THAT(read().remarks, Contains(HasSubstr("leads out of its folder, to")));
  EXPECT_THAT(page(), Not(HasSubstr("canary")));
  fs::remove(run_ / "config.yaml");
  write("own.yaml", "canary: 1\n");
  fs::create_symlink("own.yaml", run_ / "config.yaml");
  EXPECT_THAT(page(), HasSubstr("canary"));
}

TEST_F(RunFolderTest, ADamagedConfigurationIsShownAsItIs) {
  write("config.yaml", "canary: [\n");
  const RunFolder run = read();
  EXPECT_THAT(run.remarks, Contains(HasSubstr("config.yaml is damaged: ")));
  EXPECT_NE(run.config_error, "");
  EXPECT_EQ(run.name, "first");
  EXPECT_THAT(page(), HasSubstr("canary"));
  write("config.yaml", "run:\n  name: \"my run\"\n");
  EXPECT_THAT(read().remarks, Not(Contains(HasSubstr("damaged"))));
}

TEST_F(RunFolderTest, DamagedFilesAreSaidAndDoNoHarm) {
  write("metrics.jsonl", std::string("\0\xff{{{\n", 6) + "{\"step\": 1e400}\n{\"step\": 1}\n");
  write("exit_reason.json", "{\"code\": \"x\"");
  write("journal.jsonl", "[]\n{}\n");
  write("config.yaml", std::string(2 << 20, 'x'));
  write("trace/rank-00000.json", "{}");
  write("logs/rank-00000.jsonl",
        "{\"event\":\"memory_measured\",\"ranks\":[{\"a\":1},{\"a\":1,\"b\":2}]}\n"
        "{\"event\":\"memory_measured\",\"ranks\":[7]}\n"
        "{\"event\":\"resumed\",\"step\":\"x\"}\n{\"event\":\"straggler\"}\n{\"event\":\"layout\","
        "\"dp\":[]}\n");
  const RunFolder run = read();
  EXPECT_THAT(run.remarks, Contains(HasSubstr("exit_reason.json cannot be used")));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("config.yaml cannot be used")));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("The trace cannot be used")));
  EXPECT_FALSE(run.memory);
  EXPECT_TRUE(run.restarts.empty());
  EXPECT_THAT(page(), HasSubstr("metrics.jsonl has no such numbers"));
}

TEST_F(RunFolderTest, ALossOfAnEarlierStepIsNamedAsSuch) {
  const std::string first = "{\"step\": 7, \"loss_mean\": 2.5, \"val_losses\": {\"law\": 3}}\n";
  write("metrics.jsonl", first);
  EXPECT_THAT(page(), HasSubstr("2.5 nats per token (mean since the line before)<"));
  write("metrics.jsonl", first + "{\"step\": 9, \"loss_mean\": null}\n");
  EXPECT_THAT(page(),
              HasSubstr("2.5 nats per token (mean since the line before) at step 7; none at "
                        "later steps<"));
  const DocSection side_by_side = comparison_section({read(), read()});
  EXPECT_EQ(side_by_side.tables.at(0).rows.at(0).at(2), "2.5 at step 7; none at later steps");
}

TEST_F(RunFolderTest, ImpossibleNumbersAreNotShown) {
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 2, \"memory_bytes\": 1e308}\n");
  write("logs/rank-00000.jsonl",
        "{\"event\":\"memory_measured\",\"ranks\":[{\"weights\":-5}]}\n"
        "{\"event\":\"resumed\",\"step\":-3}\n{\"event\":\"resumed\",\"step\":1e300}\n"
        "{\"event\":\"resumed\",\"step\":4}\n");
  const RunFolder run = read();
  EXPECT_THAT(run.remarks, Contains(HasSubstr("metrics.jsonl: 1 number left out")));
  EXPECT_FALSE(run.memory);
  EXPECT_THAT(run.restarts, ElementsAre(4));
  EXPECT_THAT(page(), Not(HasSubstr("PiB")));
}

TEST_F(RunFolderTest, AJournalWithFewerRestartsThanTheLogIsIncomplete) {
  const std::string journal =
      "{\"time\":100,\"clock\":0,\"launch\":\"a\",\"event\":\"begin\"}\n"
      "{\"time\":102,\"clock\":2,\"launch\":\"a\",\"event\":\"launch\",\"attempt\":1,\"ranks\":1}"
      "\n";
  write("journal.jsonl", journal);
  write("metrics.jsonl", "{\"step\": 1, \"loss\": 3}\n{\"step\": 9, \"loss\": 2}\n");
  EXPECT_FALSE(read().account->is_incomplete);
  write("logs/rank-00000.jsonl", "{\"event\":\"resumed\",\"step\":0}\n");
  EXPECT_FALSE(read().account->is_incomplete) << "from another run's checkpoint";
  write("logs/rank-00000.jsonl", "{\"event\":\"resumed\",\"step\":4}\n");
  EXPECT_TRUE(read().account->is_incomplete);
  EXPECT_THAT(page(), HasSubstr("1 (as the log of rank 0 tells; the journal has 0)"));
  EXPECT_THAT(page(), HasSubstr("lacks events"));
}

TEST_F(RunFolderTest, AJournalOfARunThatIsDoneTellsOfNoKill) {
  write("journal.jsonl",
        "{\"time\":100,\"clock\":0,\"launch\":\"a\",\"event\":\"begin\"}\n"
        "{\"time\":102,\"clock\":2,\"launch\":\"a\",\"event\":\"launch\",\"attempt\":1,\"ranks\":1}"
        "\n");
  EXPECT_THAT(page(), HasSubstr("the launcher was killed"));
  write("DONE", "{\"step\": 40}");
  EXPECT_THAT(page(), Not(HasSubstr("the launcher was killed")));
  EXPECT_THAT(page(), HasSubstr("lacks events"));
}

TEST_F(RunFolderTest, FilesOfZerosAreDamaged) {
  const std::string zeros(600, '\0');
  write("metrics.jsonl", zeros);
  write("logs/rank-00000.jsonl", zeros);
  const RunFolder run = read();
  EXPECT_THAT(run.remarks,
              Contains(HasSubstr("metrics.jsonl cannot be used: none of its 600 bytes")));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("bytes of zero")));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("logs/rank-00000.jsonl: 1 damaged line")));
  fs::remove(run_ / "journal.jsonl");
  fs::create_directories(run_ / "journal.jsonl");
  EXPECT_THAT(page(), HasSubstr("journal.jsonl cannot be used, so that"));
  EXPECT_THAT(page(), Not(HasSubstr("There is no journal.jsonl")));
}

// The figure rounds to six digits, which are no number of its own for numbers near zero.
TEST_F(RunFolderTest, NumbersNearZeroAreShown) {
  write("metrics.jsonl",
        "{\"step\": 1, \"loss\": 1e-320, \"lr\": 2e-309}\n{\"step\": 2, \"loss\": 2, \"lr\": 1}\n");
  EXPECT_THAT(page(), HasSubstr("<svg"));
}

TEST_F(RunFolderTest, FilesThatAreNoFilesAreSaid) {
  fs::create_directories(run_ / "metrics.jsonl");
  EXPECT_THAT(read().remarks, Contains(HasSubstr("metrics.jsonl cannot be used")));
}

TEST_F(RunFolderTest, RunsAreCompared) {
  write("metrics.jsonl",
        "{\"step\": 1, \"loss\": 3, \"loss_mean\": 3}\n{\"step\": 2, \"loss\": 2}\n");
  const DocSection section = comparison_section({read(), read()});
  ASSERT_EQ(section.figures.size(), 1U);
  EXPECT_EQ(section.figures[0].table.rows.size(), 2U);
}

TEST(TimeText, IsUtcOrADash) {
  EXPECT_EQ(time_text(1795512193.9), "2026-11-24 09:23:13 UTC");
  EXPECT_EQ(time_text(0), "-");
  EXPECT_EQ(time_text(1e300), "-");
}

constexpr const char* kPrediction =
    "{\"schema\": 1, \"cluster\": \"two <b>ranks\", \"residual_percent\": 4, "
    "\"measured\": {\"compute\": 0.1, \"data\": 0.004}, "
    "\"predicted\": {\"compute\": 0.11, \"data\": 0}, \"memory_bytes\": 1048576, "
    "\"predicted_memory_bytes\": 2097152, \"doubts\": [\"a host has 1 rank\"]}";

TEST_F(RunFolderTest, ComparesThePredictionPartByPart) {
  write("prediction.json", kPrediction);
  const std::string text = page();
  EXPECT_THAT(text, HasSubstr("two &lt;b&gt;ranks"));
  EXPECT_THAT(text, HasSubstr("+10.0 %"));
  EXPECT_THAT(text, HasSubstr("+5.8 %")) << "of the whole step";
  EXPECT_THAT(text, HasSubstr("+100.0 %")) << "of the memory";
  EXPECT_THAT(text, HasSubstr("a host has 1 rank"));
  EXPECT_THAT(text, HasSubstr("<svg"));
}

TEST_F(RunFolderTest, ADamagedPredictionIsARemark) {
  for (const auto& [from, to] :
       {std::pair("0.11", "\"x\""), std::pair("0.11", "null"),
        std::pair("\"data\": 0}", "\"other\": 0}"), std::pair("[\"a host has 1 rank\"]", "[7]")}) {
    std::string text = kPrediction;
    text.replace(text.find(from), std::string(from).size(), to);
    write("prediction.json", text);
    const RunFolder run = read();
    EXPECT_FALSE(run.forecast) << to;
    EXPECT_THAT(run.remarks, Contains(HasSubstr("prediction.json cannot be used")));
  }
}

}  // namespace
}  // namespace trireme
