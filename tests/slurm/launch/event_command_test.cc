#include "slurm/launch/event_command.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

Note launch_note(int attempt) {
  return {"launch", {{"attempt", attempt}, {"ranks", 4}, {"nodes", {"n1", "n2"}}}, "4 ranks"};
}
Note fault_note() {
  return {"attempt_end",
          {{"attempt", 1}, {"cause", "process_death"}, {"code", 76}, {"what", "rank 0 on n1 died"}},
          "attempt 1 ended: process_death: rank 0 on n1 died"};
}
std::string name_of_event(const Note& note) {
  const auto event = site_event(note);
  return event ? event->at("event").get<std::string>() : "";
}

TEST(SiteEvents, AreThoseThatAnAdministratorActsOn) {
  EXPECT_EQ(name_of_event(launch_note(1)), "started");
  EXPECT_EQ(name_of_event(launch_note(2)), "relaunch");
  EXPECT_EQ(name_of_event(fault_note()), "fault");
  EXPECT_EQ(name_of_event({"attempt_end", {{"cause", "finished"}}, ""}), "");
  EXPECT_EQ(name_of_event({"attempt_end", {{"cause", "stopped"}}, ""}), "");
  EXPECT_EQ(name_of_event({"node_lost", {{"node", "n1"}, {"why", "silent"}}, ""}), "node_lost");
  EXPECT_EQ(name_of_event({"excluded", {{"node", "n1"}}, ""}), "node_excluded");
  EXPECT_EQ(name_of_event({"stop_asked", {{"signal", 15}}, ""}), "stop_requested");
  EXPECT_EQ(name_of_event({"over", {{"code", 0}}, ""}), "finished");
  EXPECT_EQ(name_of_event({"over", {{"code", 75}}, ""}), "stopped");
  EXPECT_EQ(name_of_event({"over", {{"code", 93}}, ""}), "gave_up");
  EXPECT_EQ(name_of_event({"status", {}, ""}), "");
  EXPECT_EQ(name_of_event({"event_command_failed", {{"why", "x"}}, ""}), "") << "an endless loop";
}

TEST(SiteEvents, ALineSaysWhichLaunchAndWhatHappened) {
  const EventCommandPlan plan{.launch = "abc", .run = "/runs/a", .host = "n0", .slurm_job = "17"};
  const auto line = nlohmann::json::parse(event_line(*site_event(fault_note()), plan, 5));
  EXPECT_EQ(line, nlohmann::json({{"schema", 1},
                                  {"event", "fault"},
                                  {"time", 5.0},
                                  {"launch", "abc"},
                                  {"run", "/runs/a"},
                                  {"host", "n0"},
                                  {"slurm_job", "17"},
                                  {"attempt", 1},
                                  {"cause", "process_death"},
                                  {"code", 76},
                                  {"text", "rank 0 on n1 died"}}));
}

TEST(SiteEvents, ALineFitsIntoAPipeWhateverItSays) {
  Note note = fault_note();
  note.fields["what"] = std::string(5000, '\x1b') + "\xff";
  EventCommandPlan plan{.run = std::string(4000, 'r')};
  const std::string line = event_line(*site_event(note), plan, 1e9);
  EXPECT_LE(line.size(), 4096U);
  EXPECT_TRUE(nlohmann::json::parse(line).is_object());
}

class EventCommandTest : public testing::Test {
 protected:
  std::string heard() const { return read_file(file_); }

  TempFolder folder_;
  const std::string file_ = (folder_.path() / "heard").string();
};

TEST_F(EventCommandTest, GetsEveryEventInOrder) {
  EventCommand command({.command = "cat >> '" + file_ + "'"});
  command.put(launch_note(1));
  command.put({"status", {}, ""});
  command.put(fault_note());
  command.put(launch_note(2));
  command.finish(30);
  EXPECT_TRUE(command.take_failures().empty());
  std::istringstream lines(heard());
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    names.push_back(nlohmann::json::parse(line).at("event"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"started", "fault", "relaunch"}));
}

TEST_F(EventCommandTest, AFailureIsReported) {
  EventCommand command({.command = "exit 3"});
  command.put(fault_note());
  command.finish(30);
  EXPECT_THAT(command.take_failures(), testing::ElementsAre("the command ended with code 3"));
  EXPECT_TRUE(command.take_failures().empty());
}

TEST_F(EventCommandTest, ACommandThatHangsIsKilledWithAllItsProcesses) {
  EventCommand command({.command = "(sleep 1000; touch '" + file_ + "') & wait", .deadline = 0.3});
  command.put(fault_note());
  command.put(launch_note(2));
  command.finish(60);
  EXPECT_THAT(command.take_failures(),
              testing::Each(HasSubstr("the command was killed after 0.3 s")));
}

TEST_F(EventCommandTest, TheEndOfALaunchDoesNotWaitForEver) {
  EventCommand command({.command = "sleep 1000", .deadline = 1000});
  command.put(fault_note());
  command.put(launch_note(2));
  command.finish(0.3);
  EXPECT_THAT(command.take_failures(),
              testing::ElementsAre("the command was killed because the launch ended",
                                   HasSubstr("before the command had run for 1 event")));
}

TEST_F(EventCommandTest, WithoutACommandNothingHappens) {
  EventCommand command({});
  command.put(fault_note());
  command.finish(30);
  EXPECT_TRUE(command.take_failures().empty());
}

}  // namespace
}  // namespace trireme
