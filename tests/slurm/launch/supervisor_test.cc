// Tests launches that end before any rank starts. tests/e2e runs whole ones.
#include "slurm/launch/supervisor.h"

#include <csignal>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "slurm/journal/journal.h"
#include "slurm/launch/run_files.h"
#include "slurm/policy/site_list.h"
#include "src/base/error.h"
#include "tests/slurm/launch/waiting.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    std::ofstream(script_) << "#!/bin/sh\nexit 3\n";
    fs::permissions(script_, fs::perms::owner_all);
    plan_.setting.program = script_.string();
    plan_.setting.run = {"train", "run.yaml"};
    plan_.nodes = {{.name = "n1"}, {.name = "n2"}};
    plan_.course.nodes_wanted = plan_.course.least_nodes = 2;
    plan_.run_folder = folder_.path() / "run";
    plan_.checkpoint_folder = plan_.run_folder / "checkpoints";
  }

  int supervise() {
    testing::internal::CaptureStderr();
    int code = -1;
    try {
      const SignalSettings settings;
      code = trireme::supervise(plan_);
    } catch (...) {
      said_ = testing::internal::GetCapturedStderr();
      throw;
    }
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::vector<nlohmann::json> journal() const {
    DamagedLines damaged;
    auto events = parse_journal(read_file(plan_.run_folder / "journal.jsonl"), damaged);
    EXPECT_EQ(damaged.count, 0);
    return events;
  }
  std::vector<std::string> events() const {
    std::vector<std::string> names;
    for (const nlohmann::json& event : journal()) {
      names.push_back(event.at("event"));
    }
    return names;
  }
  nlohmann::json reason() const {
    return nlohmann::json::parse(read_file(plan_.run_folder / "exit_reason.json"));
  }

  TempFolder folder_;
  const fs::path script_ = folder_.path() / "trireme";
  LaunchPlan plan_;
  std::string said_;
};

TEST_F(SupervisorTest, WithoutNodesItEndsAndSaysWhy) {
  plan_.site_list = folder_.path() / "bad-nodes";
  plan_.course.least_nodes = 1;
  plan_.nodes.push_back({.name = "n3"});
  ASSERT_TRUE(append_to_site_list(plan_.site_list, "n3", "its disk"));
  EXPECT_EQ(supervise(), static_cast<int>(ExitCode::device));
  EXPECT_THAT(said_, AllOf(HasSubstr("trireme launch: n3 is left out: its disk\n"),
                           HasSubstr("n1 is lost: its process exited with code 3\n"),
                           HasSubstr("0 of 3 nodes usable, at least 1 needed")));
  EXPECT_EQ(reason()["code"], 76);
  EXPECT_EQ(reason()["kind"], "launch");
  EXPECT_EQ(reason()["phase"], "start");
  EXPECT_THAT(reason()["message"].get<std::string>(), HasSubstr("0 of 3 nodes usable"));
  const std::vector<nlohmann::json> told = journal();
  EXPECT_THAT(events(),
              testing::ElementsAre("begin", "excluded", "node_lost", "node_lost", "over", "end"));
  EXPECT_EQ(told.front()["run"], plan_.setting.run);
  EXPECT_EQ(told.back()["code"], 76);
  for (const nlohmann::json& event : told) {
    EXPECT_EQ(event["launch"], told.front()["launch"]);
    EXPECT_EQ(event["launch"].get<std::string>().size(), 12U);
  }
  // The nodes that failed are added to the site list for later launches.
  const auto excluded = read_site_list(plan_.site_list);
  EXPECT_EQ(excluded.size(), 3U);
  EXPECT_EQ(excluded.at("n2"), "its process exited with code 3");
}

TEST_F(SupervisorTest, ItsLinesAreJsonIfTheRunAsksForThat) {
  plan_.json_log = true;
  EXPECT_EQ(supervise(), static_cast<int>(ExitCode::device));
  std::istringstream lines(said_);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object["launch"], journal().front()["launch"]);
    EXPECT_TRUE(object["message"].is_string());
  }
  EXPECT_GE(count, 3);
}

TEST_F(SupervisorTest, TheSitesCommandHearsOfEventsAndItsFailuresAreReported) {
  const fs::path heard = folder_.path() / "heard";
  plan_.on_event = "cat >> '" + heard.string() + "'; exit 9";
  plan_.slurm_job = "17";
  EXPECT_EQ(supervise(), static_cast<int>(ExitCode::device)) << "not the command's code";
  std::istringstream lines(read_file(heard));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    names.push_back(event.at("event"));
    EXPECT_EQ(event.at("run"), plan_.run_folder.string());
    EXPECT_EQ(event.at("slurm_job"), "17");
  }
  EXPECT_THAT(names, testing::ElementsAre("node_lost", "node_lost", "gave_up"));
  EXPECT_THAT(said_, HasSubstr("launch.on_event: the command ended with code 9"));
}

TEST_F(SupervisorTest, ASiteListThatCannotBeWrittenIsReported) {
  plan_.site_list = folder_.path() / "missing/bad-nodes";
  EXPECT_EQ(supervise(), static_cast<int>(ExitCode::device));
  EXPECT_THAT(said_, HasSubstr("cannot add n1 to the site list: cannot write to " +
                               plan_.site_list.string()));
}

// The agents wait for the end of the launch, and then fail.
TEST_F(SupervisorTest, AStopBeforeTheRanksStartAsksForARequeue) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  const SignalSettings settings;
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  ::raise(SIGTERM);  // stays pending until the supervisor reads it
  std::ofstream(script_) << "#!/bin/sh\nuntil grep -q '\"over\"' " +
                                (plan_.run_folder / "journal.jsonl").string() +
                                "; do sleep 0.01; done\nexit 3\n";
  EXPECT_EQ(supervise(), static_cast<int>(ExitCode::requeue));
  EXPECT_THAT(said_, HasSubstr("asked to stop"));
  EXPECT_EQ(reason()["code"], 75);
  EXPECT_EQ(journal().back()["code"], 75);
}

TEST_F(SupervisorTest, ASecondLaunchChangesNothing) {
  RunFiles first(plan_.run_folder, plan_.checkpoint_folder);
  first.take();
  EXPECT_THROW((void)supervise(), PolicyError);
  EXPECT_FALSE(fs::exists(plan_.run_folder / "journal.jsonl"));
  EXPECT_FALSE(fs::exists(plan_.run_folder / "exit_reason.json"));
}

}  // namespace
}  // namespace trireme
