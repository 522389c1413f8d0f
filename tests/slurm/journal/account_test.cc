#include "slurm/journal/account.h"

#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "slurm/journal/journal.h"
#include "slurm/journal/report.h"
#include "src/base/file.h"
#include "src/base/pipe.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;

json event(const std::string& name, double clock, json fields = json::object(),
           const std::string& launch = "a", double begin = 1000) {
  json line = {{"time", begin + clock}, {"clock", clock}, {"launch", launch}, {"event", name}};
  line.update(fields);
  return line;
}

json spent(double start, double load, double train, double evaluate, double checkpoint,
           double end = 0) {
  return {{"start", start},           {"load", load}, {"train", train}, {"evaluate", evaluate},
          {"checkpoint", checkpoint}, {"end", end}};
}

double at(const Account& account, TimeCause cause) {
  return account.seconds[static_cast<std::size_t>(cause)];
}

TEST(Account, ARefusedStartIsNoFailure) {
  const auto ended = [](const char* cause, const char* phase) {
    return std::vector<json>{
        event("launch", 2, {{"attempt", 1}, {"nodes", {"n1"}}, {"ranks", 1}}),
        event("attempt_end", 4,
              {{"attempt", 1}, {"cause", cause}, {"detected", 4}, {"rank0", {{"phase", phase}}}}),
        event("over", 4)};
  };
  EXPECT_EQ(account_of(ended("refused", "start")).failures, 0);
  EXPECT_EQ(account_of(ended("usage", "load")).failures, 0);
  EXPECT_EQ(account_of(ended("refused", "train")).failures, 1);
  EXPECT_EQ(account_of(ended("hang", "start")).failures, 1);
}

// The launch is at 2 s, ranks are up at 3 s and work for 40 s; the kill is noticed at 45.5 s, and
// the relaunch is at 46 s.
std::vector<json> two_attempts() {
  return {event("begin", 0),
          event("launch", 2, {{"attempt", 1}, {"nodes", {"n1", "n2"}}, {"ranks", 4}}),
          event("first_step", 9, {{"attempt", 1}, {"after_launch", 6}}),
          event("attempt_end", 45.7,
                {{"attempt", 1},
                 {"cause", "process_death"},
                 {"what", "rank 2"},
                 {"detected", 45.5},
                 {"rank0",
                  {{"begun_at", 0},
                   {"step", 40},
                   {"age", 2.3},
                   {"seen", 45.3},
                   {"spent", spent(2, 0, 30, 5, 3)}}}}),
          event("launch", 46, {{"attempt", 2}, {"nodes", {"n1", "n2"}}, {"ranks", 4}}),
          event("first_step", 51, {{"attempt", 2}, {"after_launch", 4}}),
          event("attempt_end", 100,
                {{"attempt", 2},
                 {"cause", "finished"},
                 {"detected", 100},
                 {"rank0",
                  {{"begun_at", 20},
                   {"step", 60},
                   {"age", 1},
                   {"seen", 100},
                   {"spent", spent(1, 2, 40, 4, 4, 1)}}}}),
          event("over", 100, {{"code", 0}}),
          event("end", 101, {{"code", 0}})};
}

TEST(Account, SharesOutEverySecond) {
  const Account account = account_of(two_attempts());
  EXPECT_DOUBLE_EQ(account.wall, 101);
  EXPECT_NEAR(account.sum(), account.wall, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::start), 2 + (43.5 - 40 - 2.5) + 2, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::detect), 2.5, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::evaluate), 9, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::checkpoint), 7, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::load), 2, 1e-9);
  // Half of the second attempt's steps repeat earlier ones.
  EXPECT_NEAR(at(account, TimeCause::redone), 20, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::train), 50, 1e-9);
  EXPECT_NEAR(account.effective_ratio(), 59.0 / 101, 1e-9);
  EXPECT_EQ(account.failures, 1);
}

// The journal of the first launch ends early; the second launch resumes at what the first has
// saved.
TEST(Account, AKilledLaunchIsNamedAndItsStepsCompleted) {
  const std::vector<json> events = {
      event("launch", 1, {{"attempt", 1}, {"ranks", 2}}),
      event("status", 9,
            {{"rank0", {{"begun_at", 0}, {"step", 173}, {"spent", spent(1, 0, 7, 0, 0)}}}}),
      event("launch", 1, {{"attempt", 1}, {"ranks", 2}}, "b", 1100),
      event("first_step", 3, {{"attempt", 1}, {"from", 300}, {"after_launch", 2}}, "b", 1100),
      event("attempt_end", 5, {{"attempt", 1}, {"cause", "finished"}, {"detected", 5}}, "b", 1100)};
  const Account account = account_of(events);
  ASSERT_EQ(account.attempts.size(), 2U);
  EXPECT_EQ(account.attempts[0].to_step, 300);
  EXPECT_EQ(account.attempts[1].launch_number, 2);
  const std::string text = to_text(account);
  EXPECT_NE(text.find("\n  1.1     2     0..300"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  2.1     2"), std::string::npos) << text;
  EXPECT_NE(text.find("end: unknown: the launcher was killed"), std::string::npos) << text;
}

// The second launch is refused, for example because old ranks are still at work.
TEST(Account, StepsOfAKilledLaunchAreCompletedAcrossARefusedStart) {
  const auto third = [](const char* cause) {
    const std::vector<json> events = {
        event("launch", 1, {{"generation", 7}, {"ranks", 2}}),  // as in journals of older versions
        event("status", 9,
              {{"rank0", {{"begun_at", 0}, {"step", 173}, {"spent", spent(1, 0, 7, 0, 0)}}}}),
        event("launch", 1, {{"attempt", 1}, {"ranks", 2}}, "b", 1100),
        event("attempt_end", 5, {{"attempt", 1}, {"cause", cause}, {"detected", 5}}, "b", 1100),
        event("launch", 1, {{"attempt", 1}, {"ranks", 2}}, "c", 1200),
        event("first_step", 3, {{"attempt", 1}, {"from", 300}}, "c", 1200)};
    return account_of(events);
  };
  EXPECT_EQ(third("refused").attempts.at(0).to_step, 300);
  EXPECT_EQ(third("refused").attempts.at(0).number, 7);
  EXPECT_EQ(third("hang").attempts.at(0).to_step, 173);
}

TEST(Account, TellsOfRecovery) {
  const Account account = account_of(two_attempts());
  ASSERT_EQ(account.attempts.size(), 2U);
  EXPECT_DOUBLE_EQ(account.attempts[0].recovery, -1);
  EXPECT_NEAR(account.attempts[1].exclude, 0.5, 1e-9);
  EXPECT_NEAR(account.attempts[1].recovery, 4.5, 1e-9);
  EXPECT_EQ(account.attempts[1].from_step, 20);
  EXPECT_EQ(account.attempts[0].nodes.size(), 2U);
}

TEST(Account, BetweenLaunchesItIsIdle) {
  std::vector<json> events = two_attempts();
  events.push_back(event("begin", 0, json::object(), "b", 1201));
  events.push_back(event("launch", 1, {{"attempt", 1}}, "b", 1201));
  events.push_back(event("over", 6, {{"code", 75}}, "b", 1201));
  const Account account = account_of(events);
  EXPECT_EQ(account.launches, 2);
  EXPECT_NEAR(at(account, TimeCause::idle), 100, 1e-9);
  EXPECT_NEAR(account.wall, 207, 1e-9);
  EXPECT_NEAR(account.sum(), account.wall, 1e-9);
}

// A killed supervisor writes no end, so the latest status of rank 0 is used.
TEST(Account, ALaunchWithoutAnEndIsSharedOutByWhatWasLastSeen) {
  std::vector<json> events = two_attempts();
  events.resize(3);
  events.push_back(event("status", 32,
                         {{"rank0",
                           {{"begun_at", 0},
                            {"step", 20},
                            {"age", 0.5},
                            {"seen", 32},
                            {"spent", spent(2, 0, 20, 0, 3)}}}}));
  const Account account = account_of(events);
  EXPECT_NEAR(account.wall, 32, 1e-9);
  EXPECT_NEAR(account.sum(), 32, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::train), 20, 1e-9);
}

// A launch that is not running was killed, while one that is running has not failed.
TEST(Account, AnAttemptAtWorkHasNotFailed) {
  const std::vector<json> events = {
      event("begin", 0), event("launch", 2, {{"attempt", 1}, {"ranks", 4}}),
      event("status", 9,
            {{"rank0", {{"step", 3}, {"begun_at", 0}, {"spent", spent(1, 0, 5, 0, 0)}}}})};
  EXPECT_EQ(account_of(events).failures, 1);
  const Account running = account_of(events, RunStanding::running);
  EXPECT_EQ(running.failures, 0);
  EXPECT_EQ(running.attempts[0].cause, "running");
  EXPECT_NE(to_text(running).find("1 launch, 1 attempt, 0 failures"), std::string::npos);
}

TEST(Account, TheFirstStepTellsWhereTheTimeWentBefore) {
  const json rank = {
      {"begun_at", 10}, {"step", 11}, {"age", 0}, {"seen", 9}, {"spent", spent(2, 3, 1, 0, 0)}};
  const Account account =
      account_of({event("begin", 0), event("launch", 2, {{"attempt", 1}, {"ranks", 1}}),
                  event("first_step", 9, {{"attempt", 1}, {"after_launch", 7}, {"rank0", rank}})});
  EXPECT_NEAR(account.wall, 9, 1e-9);
  EXPECT_NEAR(account.sum(), 9, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::load), 3, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::train), 1, 1e-9);
  EXPECT_NEAR(at(account, TimeCause::start), 5, 1e-9);
}

std::vector<json> without(std::vector<json> events, std::ptrdiff_t line) {
  events.erase(events.begin() + line);
  return events;
}

TEST(Account, AnEndThatIsMissingIsNoFault) {
  EXPECT_FALSE(account_of(two_attempts()).is_incomplete);
  const Account account = account_of(without(two_attempts(), 6));
  EXPECT_TRUE(account.is_incomplete);
  EXPECT_EQ(account.failures, 1) << "that of the first attempt";
  EXPECT_EQ(account.attempts.at(1).cause, kNotRecorded);
  EXPECT_NEAR(account.sum(), account.wall, 1e-9);
  EXPECT_NE(to_text(account).find("damaged or lacks events"), std::string::npos);
  EXPECT_EQ(to_json(account).at("incomplete"), true);
  const Account without_over = account_of(without(without(two_attempts(), 7), 6));
  EXPECT_EQ(without_over.failures, 1);
}

// A run that is done was not ended by a killed launcher, whatever events its journal lacks.
TEST(Account, AJournalThatWasCutOffIsIncompleteAndMakesUpNoFault) {
  const std::vector<json> all = two_attempts();
  for (std::ptrdiff_t length = 2; length < 7; ++length) {
    SCOPED_TRACE(length);
    const std::vector<json> events(all.begin(), all.begin() + length);
    const Account account = account_of(events, RunStanding::done);
    EXPECT_TRUE(account.is_incomplete);
    EXPECT_EQ(account.failures, length < 4 ? 0 : 1);
    EXPECT_NE(account.attempts.back().cause, "");
    EXPECT_EQ(account.attempts.back().what.find("killed"), std::string::npos);
    EXPECT_NEAR(account.sum(), account.wall, 1e-9);
  }
  EXPECT_FALSE(account_of(all, RunStanding::done).is_incomplete);
}

TEST(Account, ARelaunchTellsOfTheFaultBefore) {
  const Account account = account_of(without(two_attempts(), 3));
  EXPECT_TRUE(account.is_incomplete);
  EXPECT_EQ(account.failures, 1);
  EXPECT_EQ(account.attempts.at(0).cause, kNotRecorded);
  EXPECT_EQ(account.attempts.at(1).cause, "finished");
  EXPECT_NEAR(account.sum(), account.wall, 1e-9);
}

TEST(Account, AnEndTellsOfItsLaunch) {
  std::vector<json> events = without(two_attempts(), 4);
  events.at(5)["launched"] = 46;
  const Account account = account_of(events);
  EXPECT_TRUE(account.is_incomplete);
  ASSERT_EQ(account.attempts.size(), 2U);
  EXPECT_EQ(account.attempts[1].cause, "finished");
  EXPECT_NEAR(account.effective_ratio(), account_of(two_attempts()).effective_ratio(), 1e-9);
  EXPECT_NEAR(account.sum(), account.wall, 1e-9);
  const Account crossed = account_of(without(events, 3));  // nor the first attempt's end
  ASSERT_EQ(crossed.attempts.size(), 2U);
  EXPECT_EQ(crossed.attempts[0].cause, kNotRecorded);
  EXPECT_EQ(crossed.failures, 1);
}

TEST(Account, NonsenseStaysWithinTheWallTime) {
  std::vector<json> events = two_attempts();
  events[3]["rank0"]["spent"]["train"] = 1e6;  // as from a clock of another host
  events[6]["rank0"]["age"] = -5;
  events[6]["rank0"]["spent"] = "none";
  const Account account = account_of(events);
  EXPECT_NEAR(account.sum(), account.wall, 1e-6);
  EXPECT_EQ(account_of({}).wall, 0);
  EXPECT_EQ(account_of({}).effective_ratio(), 0);
}

TEST(Journal, IsReadBackAndToreLinesAreCounted) {
  const TempFolder folder;
  const auto path = folder.path() / "run" / "journal.jsonl";
  {
    Journal journal(path, "a");
    journal.write("begin", {{"x", 1}}, 0);
    journal.write("end", {{"why", "bad \xff byte"}}, 2.5);
  }
  DamagedLines damaged;
  const auto events = parse_journal(
      read_file(path) + "{\"event\":\"half\n[1]\n{\"event\":\"x\"}\n{\"being wri", damaged);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(damaged.count, 3);
  EXPECT_EQ(damaged.first, 3);
  EXPECT_EQ(events[1].at("clock"), 2.5);
}

TEST(Journal, ALineWithImpossibleNumbersIsDamaged) {
  const std::string good = R"({"event":"launch","launch":"a","time":1000,"clock":1})";
  std::string text = good + "\n";
  const std::vector<json> damage = {
      {{"clock", 1e300}},
      {{"time", -1e300}},
      {{"attempt", 1e300}},
      {{"generation", 1e300}},
      {{"ranks", -5}},
      {{"after_launch", 1e300}},
      {{"detected", -1e300}},
      {{"rank0", {{"step", 1e300}}}},
      {{"rank0", {{"begun_at", -7.0}}}},
      {{"rank0", {{"spent", {{"train", 1e300}}}}}},
  };
  for (const json& fields : damage) {
    json line = json::parse(good);
    line.update(fields);
    text += line.dump() + "\n";
  }
  DamagedLines damaged;
  EXPECT_EQ(parse_journal(text, damaged).size(), 1U);
  EXPECT_EQ(damaged.count, std::ssize(damage));
}

TEST(Journal, AFolderThatCantBeWrittenToStopsNothing) {
  Journal journal("/proc/nowhere/journal.jsonl", "a");
  journal.write("begin", json::object(), 0);
  journal.say("still here");
}

// A hanging file system may accept nothing for minutes, and agents would take a launch that waits
// for it for dead. A full pipe simulates this.
TEST(Journal, KeepsNobodyWaiting) {
  const TempFolder folder;
  Pipe full = make_pipe();
  ASSERT_NE(::fcntl(full.write.get(), F_SETPIPE_SZ, 4096), -1);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(full.write.get(), STDERR_FILENO);
  full.write.reset();
  std::string reported;
  {
    Journal journal(folder.path() / "journal.jsonl", "a");
    for (int i = 0; i < 100; ++i) {
      journal.say(std::string(999, 'x'));
    }
    journal.write("end", json::object(), 1);  // reached although nobody reads the pipe
    std::thread reader([&] {
      std::array<char, 4096> chunk{};
      while (reported.size() < 100'000) {
        reported.append(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(
                                          0, ::read(full.read.get(), chunk.data(), chunk.size()))));
      }
    });
    reader.join();
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  EXPECT_EQ(reported.size(), 100'000U);
  EXPECT_NE(read_file(folder.path() / "journal.jsonl").find("\"end\""), std::string::npos);
}

TEST(Report, NamesCausesAndAttempts) {
  const Account account = account_of(two_attempts());
  const std::string text = to_text(account);
  for (const char* word : {"redone", "wall time", "process_death", "rank 2", "20..60", "58.4 %"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
  EXPECT_NE(text.find("1 launch, 2 attempts, 1 failure, one every 1m41s\n"), std::string::npos)
      << text;
  const auto object = to_json(account);
  EXPECT_EQ(object.at("attempts").size(), 2U);
  EXPECT_TRUE(object.at("attempts")[0].at("recovery_seconds").is_null());
}

}  // namespace
}  // namespace trireme
