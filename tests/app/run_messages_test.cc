// What a run says about its end: why it stopped, when its job ends, and what Ctrl-C will do.
#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/run/early_end.h"
#include "src/app/run/launch_variables.h"
#include "src/app/run/stop_message.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/environment_variables.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string stopped_by(int signal) { return stop_message({.step = 12, .stop_signal = signal}); }

TEST(StopMessage, NamesTheCauseAndHowToResume) {
  EnvironmentVariables variables;
  variables.set("TRIREME_GENERATION", std::nullopt);
  EXPECT_EQ(stopped_by(SIGTERM),
            "stopped on SIGTERM; checkpoint saved at step 12; run the same command to resume");
  EXPECT_THAT(stopped_by(SIGUSR1), HasSubstr("stopped on SIGUSR1; "));
  EXPECT_THAT(stopped_by(kTimeLimitSignal), HasSubstr("stopped before the end of the job; "));
  EXPECT_THAT(stopped_by(SIGXCPU), HasSubstr("(SIGXCPU; raise ulimit -St); "));
  EXPECT_THAT(stopped_by(0), HasSubstr("stopped on a signal; "));
}

TEST(StopMessage, ALaunchStopsItsRanksWithSigusr2) {
  EnvironmentVariables variables;
  variables.set("TRIREME_GENERATION", std::nullopt);
  EXPECT_THAT(stopped_by(SIGUSR2), HasSubstr("stopped on SIGUSR2; "));
  variables.set("TRIREME_GENERATION", "1");
  EXPECT_THAT(stopped_by(SIGUSR2), HasSubstr("stopped by the launch; "));
  EXPECT_THAT(stopped_by(SIGTERM), HasSubstr("stopped on SIGTERM; "));
}

class EarlyEnd : public testing::Test {
 protected:
  std::string logged() const { return read_file(log_file(folder_.path(), 0)); }

  TempFolder folder_;
  Log log_{{.folder = folder_.path()}};
  RunConfig config_;
  const TimeLimit::Clock::time_point now_ = TimeLimit::Clock::now();
  const JobEnd soon_{now_ + std::chrono::seconds(100), ""};
};

TEST_F(EarlyEnd, AJobWithoutAnEndHasNoLimit) {
  TimeLimit limit = time_limit(config_, {}, log_);
  EXPECT_FALSE(limit.reached(now_ + std::chrono::hours(1000), 1, 1));
  EXPECT_THAT(logged(), Not(HasSubstr("cannot find out")));
}

TEST_F(EarlyEnd, TheMarginIsThatOfTheConfiguration) {
  config_.stop_before_end = {30, ""};
  TimeLimit limit = time_limit(config_, soon_, log_);
  EXPECT_EQ(limit.margin_seconds(1000, 0), 30);
  EXPECT_FALSE(limit.reached(now_ + std::chrono::seconds(69), 0, 0));
  EXPECT_TRUE(limit.reached(now_ + std::chrono::seconds(71), 0, 0));
}

TEST_F(EarlyEnd, AutoComputesTheMarginAndNeverHasNone) {
  config_.stop_before_end = {0, "auto"};
  const TimeLimit automatic = time_limit(config_, soon_, log_);
  EXPECT_GT(automatic.margin_seconds(1000, 0), automatic.margin_seconds(1, 0));
  config_.stop_before_end = {0, "never"};
  TimeLimit never = time_limit(config_, soon_, log_);
  EXPECT_FALSE(never.reached(now_ + std::chrono::seconds(200), 0, 0));
}

TEST_F(EarlyEnd, AnUnknownEndIsAWarning) {
  TimeLimit limit = time_limit(config_, {{}, "scontrol: no answer"}, log_);
  EXPECT_FALSE(limit.reached(now_ + std::chrono::hours(1000), 1, 1));
  EXPECT_THAT(logged(), HasSubstr("cannot find out when this job ends (scontrol: no answer)"));
}

TEST_F(EarlyEnd, CtrlCIsExplainedUnderMpirunOnly) {
  EnvironmentVariables variables;
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "TRIREME_LAUNCH_ID", "OMPI_MCA_odls_base_sigkill_timeout"}) {
    variables.set(name, std::nullopt);
  }
  warn_of_grace(log_);
  EXPECT_THAT(logged(), Not(HasSubstr("Ctrl-C")));
  variables.set("OMPI_COMM_WORLD_RANK", "0");
  variables.set("OMPI_MCA_odls_base_sigkill_timeout", "7");
  warn_of_grace(log_);
  EXPECT_THAT(logged(), HasSubstr("if the step in progress ends within 14 s, then mpirun kills"));
  variables.set("TRIREME_LAUNCH_ID", "a");
  const std::string before = logged();
  warn_of_grace(log_);
  EXPECT_EQ(logged(), before) << "a launch waits";
}

TEST(LaunchVariables, AnAttemptIsAPositiveInteger) {
  EnvironmentVariables variables;
  for (const char* const good : {"", "1", "2147483647"}) {
    variables.set("TRIREME_GENERATION", good);
    EXPECT_NO_THROW(check_attempt_number()) << good;
  }
  for (const char* const wrong : {"0", "-1", "1.5", "2147483648", "one", " 1", "1 ", "+1"}) {
    variables.set("TRIREME_GENERATION", wrong);
    EXPECT_THAT(message_of<ConfigError>([] { check_attempt_number(); }),
                HasSubstr(std::string("TRIREME_GENERATION is '") + wrong + "'"));
  }
}

TEST(LaunchVariables, HoursBetweenFailuresArePositive) {
  EnvironmentVariables variables;
  variables.set("TRIREME_MTBF_HOURS", std::nullopt);
  EXPECT_EQ(seen_mtbf_hours(), 0);
  variables.set("TRIREME_MTBF_HOURS", "");
  EXPECT_EQ(seen_mtbf_hours(), 0);
  variables.set("TRIREME_MTBF_HOURS", "0.25");
  EXPECT_EQ(seen_mtbf_hours(), 0.25);
  for (const char* const wrong : {"0", "-1", "inf", "nan", "2h"}) {
    variables.set("TRIREME_MTBF_HOURS", wrong);
    EXPECT_THAT(message_of<ConfigError>([] { (void)seen_mtbf_hours(); }),
                HasSubstr("expected a number of hours above 0"));
  }
}

}  // namespace
}  // namespace trireme
