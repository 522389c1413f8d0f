#include "src/train/report/metrics.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/base/log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

StepMetrics step_of(std::int64_t step) {
  StepMetrics m;
  m.step = step;
  m.global_batch = 12;
  m.samples = 345;
  m.tokens_per_s = 50;
  m.tokens_left = 6000;
  m.step_ms = 1000;
  return m;
}

// Later steps may have larger batches than the steps so far, so the time left follows from the
// tokens left.
TEST(StepLines, TheTimeLeftIsThatOfTheTokensLeft) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10})};
  EXPECT_THAT(plain_step_line(step_of(30), plan), HasSubstr("  2m00s left  "));
  EXPECT_THAT(plain_step_line(step_of(40), plan), Not(HasSubstr("left")));
  StepMetrics resumed = step_of(30);
  resumed.tokens_per_s = std::nan("");
  EXPECT_THAT(plain_step_line(resumed, plan), Not(HasSubstr("left")));
}

TEST(StepLines, MegatronsLineHasTheBatchOfTheStep) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10})};
  EXPECT_THAT(megatron_step_line(step_of(30), plan),
              testing::AllOf(HasSubstr("global batch size:    12 |"),
                             HasSubstr("consumed samples:          345 |")));
}

TEST(StepLines, ShowThePartsOfTheLossOfRunsWithATeacher) {
  const MetricsPlan plan{0, 40, 8};
  EXPECT_THAT(plain_step_line(step_of(30), plan), Not(HasSubstr("divergence")));
  StepMetrics taught = step_of(30);
  taught.cross_entropy = 2.5;
  taught.kl_divergence = 0.125;
  EXPECT_THAT(plain_step_line(taught, plan),
              HasSubstr("  cross entropy 2.5000  divergence 0.1250"));
}

TEST(StepLines, ShowTheLossScaleOfRunsThatHaveOne) {
  const MetricsPlan plan{0, 40, 8};
  EXPECT_THAT(plain_step_line(step_of(30), plan), Not(HasSubstr("loss scale")));
  EXPECT_THAT(megatron_step_line(step_of(30), plan), Not(HasSubstr("loss scale")));
  StepMetrics half = step_of(30);
  half.loss_scale = 65536;
  EXPECT_THAT(plain_step_line(half, plan), HasSubstr("  loss scale 65536"));
  EXPECT_THAT(megatron_step_line(half, plan), HasSubstr(" | loss scale: 65536.0 | grad norm: "));
}

TEST(MetricsPlan, CountsTheWorkOfSteps) {
  const MetricsPlan plan{0, 40, BatchSchedule(16, {4, 4, 10}), 5};
  EXPECT_EQ(plan.samples_before(10) - plan.samples_before(0), 5 * 4 + 5 * 8);
}

TEST(StepLines, ThePlainLineHasEverythingInItsPlace) {
  const MetricsPlan plan{0, 2000, 8};
  StepMetrics m = step_of(40);
  m.loss = 9;  // the loss of this step alone; the line has the mean
  m.loss_mean = 4.12346;
  m.tokens_per_s = 12300;
  m.tokens_left = 12300 * 75;
  m.lr = 6e-4;
  m.grad_norm = 0.931;
  EXPECT_EQ(plain_step_line(m, plan),
            "step 40/2000  loss 4.1235  12.30k tokens/s  1m15s left  lr 6.0e-04  grad norm 0.93");
  m.val_loss = 4.5;
  m.skipped_steps = 1;
  EXPECT_EQ(plain_step_line(m, plan),
            "step 40/2000  loss 4.1235  validation 4.5000  12.30k tokens/s  1m15s left  lr 6.0e-04"
            "  grad norm 0.93  1 step skipped");
}

// The words and their order are those of Megatron-LM's training_log().
TEST(StepLines, MegatronsLineHasItsUnits) {
  StepMetrics m = step_of(30);
  m.loss_mean = 4.125;
  m.lr = 6e-4;
  m.grad_norm = 0.5;
  m.flops_per_s_per_rank = 1.5e12;
  m.skipped_steps = 2;
  const std::string line = megatron_step_line(m, {0, 40, 16});
  EXPECT_EQ(line,
            "iteration       30/      40 | consumed samples:          345 | elapsed time per "
            "iteration (ms): 1000.0 | throughput per GPU (TFLOP/s/GPU): 1.500 | learning rate: "
            "6.000000E-04 | global batch size:    12 | lm loss: 4.125000000E+00 | grad norm: 0.500 "
            "| number of skipped iterations:   2 |");
  m.val_loss = 0.25;
  EXPECT_EQ(megatron_step_line(m, {0, 40, 16}), line + " validation loss: 2.500000000E-01 |");
}

class MetricsLogTest : public testing::Test {
 protected:
  // Logs these steps in one start of a run that has done `first` steps.
  void write(std::int64_t first, const std::vector<StepMetrics>& steps) {
    MetricsLog metrics(run_, log_, {first, 10, 4});
    for (const StepMetrics& step : steps) {
      metrics.write(step);
    }
    metrics.finish();
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream file(run_.metrics());
    for (std::string line; std::getline(file, line);) {
      all.push_back(nlohmann::json::parse(line));
    }
    return all;
  }
  std::vector<int> steps() const {
    std::vector<int> all;
    for (const nlohmann::json& line : lines()) {
      all.push_back(line.at("step").get<int>());
    }
    return all;
  }

  TempFolder folder_;
  RunDirectory run_{folder_.path()};
  Log log_{{.terminal_level = LogLevel::error, .folder = folder_.path() / "logs"}};
};

TEST_F(MetricsLogTest, ALineHasTheBitsOfItsLosses) {
  StepMetrics m = step_of(3);
  m.loss = 1.5;
  m.loss_mean = 2.5;
  m.tokens = 123;
  m.memory_bytes = 77;
  m.val_loss = -2;
  write(0, {m});
  ASSERT_EQ(lines().size(), 1U);
  const nlohmann::json line = lines().front();
  EXPECT_EQ(line.at("loss"), 1.5);
  EXPECT_EQ(line.at("loss_bits"), "3fc00000");  // IEEE 754
  EXPECT_EQ(line.at("loss_mean"), 2.5);
  EXPECT_EQ(line.at("tokens"), 123);
  EXPECT_EQ(line.at("memory_bytes"), 77);
  EXPECT_EQ(line.at("val_loss"), -2.0);
  EXPECT_EQ(line.at("val_loss_bits"), "c0000000");
}

TEST_F(MetricsLogTest, PowerIsTheEnergyOverTheTimeInWhichItWasUsed) {
  StepMetrics m = step_of(1);
  m.step_ms = 100;  // without evaluations, which use energy
  m.gpu_joules = 150;
  write(0, {m});
  EXPECT_TRUE(lines().front().at("gpu_watts").is_null());
  m.energy_seconds = 0.25;
  write(0, {m});
  EXPECT_EQ(lines().front().at("gpu_watts"), 600.0);
  EXPECT_TRUE(lines().front().at("cpu_watts").is_null());
}

TEST_F(MetricsLogTest, NumbersThatAreNoneAreNull) {
  StepMetrics m = step_of(1);
  m.loss = std::numeric_limits<double>::infinity();
  m.grad_norm = std::nan("");
  write(0, {m});
  EXPECT_TRUE(lines().front().at("loss").is_null());
  EXPECT_EQ(lines().front().at("loss_bits"), "7f800000");
  EXPECT_TRUE(lines().front().at("grad_norm").is_null());
  EXPECT_FALSE(lines().front().contains("val_loss"));
}

TEST_F(MetricsLogTest, AnotherStartForgetsTheStepsThatItRepeats) {
  write(0, {step_of(2), step_of(4), step_of(6)});
  std::ofstream(run_.metrics(), std::ios::app) << "{\"step\": 3, \"loss\"";
  write(4, {});
  EXPECT_EQ(steps(), (std::vector<int>{2, 4}));
  write(4, {step_of(5)});
  EXPECT_EQ(steps(), (std::vector<int>{2, 4, 5}));
}

TEST_F(MetricsLogTest, AnotherStartSaysWhichDamagedLinesItRemoves) {
  write(0, {step_of(2)});
  std::ofstream(run_.metrics(), std::ios::app) << "{\"step\": 3, \"lo\n{\"step\": 4}\n{\"step\"";
  write(4, {});
  EXPECT_EQ(steps(), (std::vector<int>{2, 4}));
  EXPECT_THAT(read_file(log_file(folder_.path() / "logs", 0)),
              HasSubstr("metrics.jsonl: removed 1 damaged line (line 2)"));
}

TEST_F(MetricsLogTest, FindsTheEvaluationOfAStep) {
  EXPECT_EQ(logged_validation_loss(run_.metrics(), 2), std::nullopt) << "no file";
  StepMetrics evaluated = step_of(2);
  evaluated.val_loss = 1.5;
  StepMetrics failed = step_of(4);
  failed.val_loss = std::nan("");
  write(0, {evaluated, step_of(3), failed});
  EXPECT_EQ(logged_validation_loss(run_.metrics(), 2), 1.5);
  EXPECT_EQ(logged_validation_loss(run_.metrics(), 3), std::nullopt);
  ASSERT_TRUE(logged_validation_loss(run_.metrics(), 4).has_value());
  EXPECT_TRUE(std::isnan(*logged_validation_loss(run_.metrics(), 4)));
  EXPECT_EQ(logged_validation_loss(run_.metrics(), 5), std::nullopt);
}

TEST_F(MetricsLogTest, FilesThatCannotBeOpenedCostNoMoreThanThemselves) {
  std::filesystem::create_directories(run_.metrics());
  std::ofstream(run_.tensorboard()) << "a file where the folder should be";
  EXPECT_NO_THROW(write(0, {step_of(1), step_of(2)}));
  const std::string log = read_file(log_file(folder_.path() / "logs", 0));
  EXPECT_THAT(log,
              testing::AllOf(HasSubstr("cannot write metrics.jsonl, training continues without"),
                             HasSubstr("cannot write events for TensorBoard, training continues")));
}

TEST(MetricsLog, ReportsLinesThatAFullDiskRefused) {
  const SmallFileSystem disk(std::size_t{64} << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  testing::internal::CaptureStderr();
  {
    Log log({.terminal_level = LogLevel::warning});
    MetricsLog metrics(RunDirectory(disk.path()), log, {.last_step = 500});
    for (std::int64_t step = 1; step <= 500; ++step) {
      metrics.write(step_of(step));
    }
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_THAT(seen, testing::ContainsRegex("cannot write [^\n]*metrics.jsonl: No space left on "
                                           "device[^\n]*; lines are missing from step [0-9]+ on"));
  EXPECT_THAT(seen, testing::ContainsRegex("metrics.jsonl lacks [0-9]+ lines that"));
  EXPECT_THAT(seen, testing::ContainsRegex("tfevents[^\n]* lacks [0-9]+ records that"));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 4) << seen;
}

}  // namespace
}  // namespace trireme
