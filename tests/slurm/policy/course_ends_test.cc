// Tests when a launch gives up, stops, or excludes a node.
#include <csignal>
#include <tuple>

#include <gtest/gtest.h>

#include "slurm/policy/course.h"
#include "tests/slurm/policy/course_play.h"

namespace trireme {
namespace {

TEST(Course, ThreeRelaunchesWithoutACheckpointAreEnough) {
  Play play = at_work();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(play.code(), -1);
    play.ranks_work({"n1", "n2"});
    play.ends(139);
  }
  EXPECT_EQ(play.code(), 93);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 4U);
}

TEST(Course, ProgressOnDiskOrInMemoryEarnsFurtherRelaunches) {
  Play play = at_work();
  for (int i = 0; i < 12; ++i) {
    play.ranks_work({"n1", "n2"});
    if (i % 2 == 0) {
      play.ends(139, false, 10 * i);
    } else {
      play.memory_step = 10 * i;
      play.ends(139);
    }
  }
  EXPECT_EQ(play.code(), -1);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 13U);
}

// The run rewinds to step 60 and saves earlier steps from then on.
TEST(Course, ARunThatWentBackStillProgresses) {
  Play play = at_work();
  for (const std::int64_t step : {100, 60, 70, 80, 90, 95}) {
    play.ranks_work({"n1", "n2"});
    play.ends(139, false, step);
  }
  EXPECT_EQ(play.code(), -1);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 7U);
}

TEST(Course, TheSameStepSavedAgainIsNoProgress) {
  Play play = at_work();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(play.code(), -1);
    play.ranks_work({"n1", "n2"});
    play.ends(139, false, 60);
  }
  EXPECT_EQ(play.code(), 93);
}

TEST(Course, ADiskThatStaysFullEndsTheLaunch) {
  Play play = at_work();
  play.reason = StatedReason{.code = 74, .kind = "io", .message = "no space"};
  play.ends(1);
  EXPECT_EQ(play.code(), -1);
  play.ranks_work({"n1", "n2"});
  play.ends(1, false, 10);  // it has saved a checkpoint meanwhile
  EXPECT_EQ(play.code(), -1);
  play.ranks_work({"n1", "n2"});
  play.ends(1, false, 10);
  EXPECT_EQ(play.code(), 74);
  EXPECT_NE(play.all<Finish>().front().why.find("no space"), std::string::npos);
}

TEST(Course, OutOfMemoryIsTriedTwiceMore) {
  Play play = at_work();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(play.code(), -1);
    play.ranks_work({"n1", "n2"});
    ++play.oom_kills;
    play.memory_step += 10;
    play.ends(137);
    EXPECT_EQ(play.last_cause(), "out_of_memory");
  }
  EXPECT_EQ(play.code(), 2);
}

TEST(Course, WhatOnlyAPersonCanMendEndsAtOnce) {
  for (const int code : {2, 3, 65, 66, 77}) {
    Play play = at_work();
    play.reason = StatedReason{.code = code, .kind = "k", .message = "m"};
    play.ends(143);
    EXPECT_EQ(play.code(), code);
    EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
  }
}

TEST(Course, AskedToStopItSavesFirst) {
  Play play = at_work();
  play.feed(StopAsked{SIGTERM});
  ASSERT_EQ(play.all<SignalRanks>().size(), 1U);
  EXPECT_EQ(play.all<SignalRanks>()[0].signal, SIGUSR2);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.ends(75);
  EXPECT_EQ(play.code(), 75);
}

TEST(Course, AskedTwiceItEndsTheRanksAndDoesNotClaimASave) {
  Play play = at_work();
  play.ranks["n1"][0].page.step = 12;
  play.report("n1");
  play.feed(StopAsked{SIGTERM});
  play.feed(StopAsked{SIGTERM});
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.logged_step = 15;  // after its agent's last report, rank 0 has gone on
  play.ends(137, false, 10);
  ASSERT_EQ(play.code(), 128 + SIGTERM);
  const Finish end = play.all<Finish>().front();
  EXPECT_EQ(end.step, 15);
  EXPECT_EQ(end.phase, "train");
  EXPECT_EQ(end.why,
            "not saved: a second signal (SIGTERM) ended the ranks at once; the last step was 15, "
            "the newest checkpoint is step 10: 5 steps are lost");
}

// The rank has printed the same sentence before.
TEST(Course, TheEndOfTheLaunchIsToldOnce) {
  Play play = at_work();
  play.feed(StopAsked{SIGTERM});
  play.reason = StatedReason{.code = 75, .kind = "signal", .message = "stopped by the launch"};
  play.ends(75);
  int told = 0;
  for (const Note& note : play.all<Note>()) {
    told += note.text.find("stopped by the launch") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

// There is nothing to save, and no rank to signal.
TEST(Course, AskedToStopBeforeAnyRankIsThereItEndsAtOnce) {
  Play play(two_nodes(), 2);
  play.feed(Started{});
  play.come_up({"n1", "n2"});
  play.feed(StopAsked{SIGUSR1});
  EXPECT_TRUE(play.all<SignalRanks>().empty());
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.code(), 75);
}

// A step that is only in memory would be lost with the launch.
TEST(Course, AskedToStopInARelaunchItWaitsForRanksThatCanSave) {
  Play play = at_work();
  play.memory_step = 110;
  play.ends(137, false, 100);
  ASSERT_EQ(play.all<LaunchRanks>().size(), 2U);
  play.ranks.clear();
  play.feed(StopAsked{SIGUSR1});
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.ranks_work({"n1", "n2"});
  play.pass(1);
  EXPECT_EQ(play.all<SignalRanks>().size(), 1U);
}

TEST(Course, RanksThatComeAfterTheSignalHearOfIt) {
  Play play(two_nodes(), 2);
  play.feed(Started{});
  play.come_up({"n1", "n2"});
  play.ranks_work({"n1"});
  play.feed(StopAsked{SIGUSR1});
  EXPECT_EQ(play.all<SignalRanks>().size(), 1U);
  play.ranks_work({"n1", "n2"});
  play.pass(5);
  EXPECT_EQ(play.all<SignalRanks>().size(), 2U);
}

// A process that hangs in the kernel survives SIGKILL.
TEST(Course, ALauncherThatDoesNotDieIsLeft) {
  Play play = at_work();
  play.ranks["n1"][0].gone = true;
  play.pass(10);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  EXPECT_TRUE(play.all<LeaveLauncher>().empty());
  play.pass(10);
  EXPECT_EQ(play.all<LeaveLauncher>().size(), 1U);
  play.ends(std::nullopt);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 2U);
}

TEST(Course, ANodeWhoseOldRanksDoNotDieIsLost) {
  Play play = at_work();
  play.feed(LauncherEnded{137});
  play.cleared = {{"n1", 2}};
  play.pass(58);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
  play.pass(5);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
  EXPECT_TRUE(play.all<BlameNode>().empty());
}

// The rank's own code is the only evidence if the run has no folder yet or its disk is full, and
// mpirun was killed before it could exit with a code.
TEST(Course, ARanksOwnCodeCounts) {
  for (const auto& [code, signal, end] : {std::tuple(2, 0, 2), std::tuple(77, 0, 77),
                                          std::tuple(74, SIGTERM, 74), std::tuple(74, 0, -1)}) {
    Play play = at_work();
    if (signal != 0) {
      play.feed(StopAsked{signal});
    }
    play.ranks["n2"][1].gone = true;
    play.ranks["n2"][1].page.exit_code = code;
    play.pass(3);
    EXPECT_EQ(play.all<KillRanks>().size(), 1U);
    play.ends(137);
    EXPECT_EQ(play.code(), end) << code;
  }
}

// checkpoint.resume applies to the first start only.
TEST(Course, OnceItHasSavedItGoesOnFromThere) {
  Play play = at_work();
  play.ranks_work({"n1", "n2"});
  play.ends(137);
  EXPECT_FALSE(play.all<LaunchRanks>().back().has_saved);
  play.ranks_work({"n1", "n2"});
  play.ends(137, false, 60);
  EXPECT_TRUE(play.all<LaunchRanks>().back().has_saved);
}

// mpirun waits for daemons that are gone.
TEST(Course, ALauncherThatOutlivesItsRanksIsKilled) {
  for (const bool stopping : {true, false}) {
    Play play = at_work();
    if (stopping) {
      play.feed(StopAsked{SIGTERM});
    }
    for (const char* node : {"n1", "n2"}) {
      for (RankState& rank : play.ranks[node]) {
        rank.page.phase = ProgressPhase::end;
        rank.gone = true;
      }
    }
    play.pass(4);
    EXPECT_EQ(play.all<KillRanks>().size(), stopping ? 1U : 0U);
    play.pass(10);
    EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  }
}

// Slurm signals the supervisor and the job script, which signals the supervisor again.
TEST(Course, AnotherSignalOfTheSameMomentIsTheSameWish) {
  Play play = at_work();
  play.feed(StopAsked{SIGTERM});
  play.now += 1;
  play.feed(StopAsked{SIGUSR2});
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(6);
  play.feed(StopAsked{SIGUSR2});
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
}

TEST(Course, NodesThatWereLostAskForARequeue) {
  CoursePlan plan = two_nodes();
  plan.in_slurm = true;
  Play play = at_work(plan);
  play.dies("n2");
  play.dies("n3");
  play.feed(LauncherEnded{205});
  play.cleared = {{"n1", 2}};
  play.pass(7);
  EXPECT_EQ(play.code(), 75);
}

TEST(Course, AskedToStopBetweenAttemptsItStartsNoOther) {
  Play play = at_work();
  play.feed(LauncherEnded{137});
  play.feed(StopAsked{SIGUSR1});
  EXPECT_EQ(play.code(), 75);
  EXPECT_EQ(play.last_cause(), "stopped");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
}

TEST(Course, ADevicesFaultSendsItsNodeAwayAtOnce) {
  Play play = at_work();
  play.reason = StatedReason{.code = 76, .kind = "device", .message = "XID 79", .rank = 3};
  play.ends(76);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
}

// srun has placed the first ranks on the second node.
TEST(Course, ADevicesFaultIsThatOfTheNodeWhereTheRankWas) {
  Play play = at_work();
  play.ranks_work({"n2", "n1"});
  play.reason = StatedReason{.code = 76, .kind = "device", .message = "XID 79", .rank = 3};
  play.ends(76);
  EXPECT_EQ(play.last_nodes(), (Names{"n2", "n3"}));
}

TEST(Course, ANodeWhoseRanksDieAgainIsSentAwayWhileThereIsASpare) {
  Play play = at_work();
  for (int i = 0; i < 2; ++i) {
    play.ranks_work({"n1", "n2"});
    play.ranks["n1"][0].gone = true;
    play.report("n1");
    play.ends(137);
  }
  EXPECT_EQ(play.last_nodes(), (Names{"n2", "n3"}));
}

// Progress pages of an earlier attempt do not count as deaths.
TEST(Course, OldPagesSayNothing) {
  Play play = at_work();
  play.ends(137);
  play.ranks["n1"][0].gone = true;
  play.ranks["n1"][0].age = 1e5;
  play.report("n1");
  play.pass(5);
  EXPECT_TRUE(play.all<KillRanks>().empty());
}

}  // namespace
}  // namespace trireme
