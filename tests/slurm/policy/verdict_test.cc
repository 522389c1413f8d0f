#include "slurm/policy/verdict.h"

#include <csignal>

#include <gtest/gtest.h>

namespace trireme {
namespace {

Evidence ended_with(int code) {
  Evidence e;
  e.launcher_code = code;
  e.all_ranks_seen = true;
  return e;
}

StatedReason reason(int code, const std::string& kind) {
  return {.code = code,
          .kind = kind,
          .message = "why\nmore",
          .rank = 1,
          .host = "h",
          .step = 5,
          .phase = "train"};
}

TEST(Verdict, DoneCountsMoreThanTheCode) {
  Evidence e = ended_with(137);
  e.done = true;
  EXPECT_EQ(judge(e).cause, Cause::finished);
  EXPECT_EQ(judge(e).code, 0);
}

TEST(Verdict, ACodeOfZeroWithoutDoneIsNoSuccess) {
  EXPECT_EQ(judge(ended_with(0)).cause, Cause::early_exit);
}

TEST(Verdict, WhatOnlyAPersonCanMendEndsWithItsCode) {
  for (const auto& [code, cause] : {std::pair(2, Cause::usage),
                                    {3, Cause::numerics},
                                    {65, Cause::data},
                                    {66, Cause::not_found},
                                    {77, Cause::refused}}) {
    Evidence e = ended_with(143);
    e.reason = reason(code, "some");
    EXPECT_EQ(judge(e).cause, cause);
    EXPECT_EQ(judge(e).code, code);
    EXPECT_TRUE(is_final(judge(e).cause));
    // Without a run folder, the cause follows from the exit code alone.
    EXPECT_EQ(judge(ended_with(code)).cause, cause);
  }
}

TEST(Verdict, ARanksOwnCodeCountsWhereNoFileSaysMore) {
  Evidence e = ended_with(137);
  e.gone = {{"n1", 2}, {"n2", 5, 77}};
  EXPECT_EQ(judge(e).cause, Cause::refused);
  EXPECT_NE(judge(e).what.find("rank 5 on n2 exited with code 77"), std::string::npos);
  // Rank 5 only complains about the death of rank 2.
  e.gone = {{"n1", 2}, {"n2", 5, 85}};
  EXPECT_EQ(judge(e).cause, Cause::process_death);
}

// The step is only in memory, which is lost with the launch.
TEST(Verdict, AStopThatCouldNotSaveIsNotSaved) {
  for (Evidence e : {ended_with(74), ended_with(137)}) {
    e.stop_asked = true;
    if (e.launcher_code == 137) {
      e.gone = {{"n1", 0, 74}};
    }
    EXPECT_EQ(judge(e).cause, Cause::stopped);
    EXPECT_EQ(judge(e).code, 74);
  }
}

TEST(Verdict, AKilledRankIsTheCauseNotTheComplaintOfTheOthers) {
  Evidence e = ended_with(137);
  e.reason = reason(85, "communication");
  e.gone = {{"n1", 2}};
  EXPECT_EQ(judge(e).cause, Cause::process_death);
  EXPECT_EQ(judge(e).nodes, std::vector<std::string>{"n1"});
  EXPECT_NE(judge(e).what.find("rank 2 on n1"), std::string::npos);
}

TEST(Verdict, ALostNodeExplainsItsDeadRanks) {
  Evidence e = ended_with(205);
  e.gone = {{"n2", 2}};
  e.lost_nodes = {"n2"};
  e.reason = reason(76, "device");
  EXPECT_EQ(judge(e).cause, Cause::node_death);
}

TEST(Verdict, AHangNamesTheStoppedRankFirst) {
  Evidence e = ended_with(137);
  e.killed_launcher = true;
  e.stale = {{"n1", 0, 7, "train", 36, 30, 'S'}, {"n1", 1, 7, "train", 36, 30, 'T'}};
  const Verdict verdict = judge(e);
  EXPECT_EQ(verdict.cause, Cause::hang);
  EXPECT_EQ(verdict.code, 85);
  EXPECT_LT(verdict.what.find("rank 1"), verdict.what.find("rank 0"));
}

TEST(Verdict, TheRecordersOwnAlarmIsAHang) {
  Evidence e = ended_with(85);
  e.reason = reason(85, "hang");
  e.gone = {{"n1", 0}};
  EXPECT_EQ(judge(e).cause, Cause::hang);
}

TEST(Verdict, OutOfMemoryByTheRunOrTheKernel) {
  Evidence e = ended_with(76);
  e.reason = reason(76, "memory");
  EXPECT_EQ(judge(e).cause, Cause::out_of_memory);
  e.reason = reason(76, "device");
  e.reason->message = "out of memory: 576 MiB more are needed";
  EXPECT_EQ(judge(e).cause, Cause::out_of_memory);
  Evidence killed = ended_with(137);
  killed.oom_kills = 1;
  EXPECT_EQ(judge(killed).cause, Cause::out_of_memory);
  // Another job's process was killed, while ours ended for another reason.
  Evidence other = ended_with(0);
  other.oom_kills = 1;
  EXPECT_EQ(judge(other).cause, Cause::early_exit);
}

// Ranks that complain about a lost peer do not explain its death.
TEST(Verdict, VictimsOfAPeersDeathAreNoCulprits) {
  Evidence e = ended_with(137);
  e.gone = {{"n3", 2, 85}, {"n1", 0}, {"n2", 1, 85}};
  const Verdict verdict = judge(e);
  EXPECT_EQ(verdict.cause, Cause::process_death);
  EXPECT_EQ(verdict.what.find("rank 0 on n1 died"), 0U) << verdict.what;
  EXPECT_EQ(verdict.nodes, std::vector<std::string>{"n1"});
  e.gone.erase(e.gone.begin() + 1);  // nobody saw the first death
  EXPECT_NE(judge(e).what.find("rank 2 on n3, rank 1 on n2"), std::string::npos);
}

TEST(Verdict, AskedToStopIsNoFault) {
  Evidence e = ended_with(137);
  e.stop_asked = true;
  EXPECT_EQ(judge(e).cause, Cause::stopped);
  EXPECT_EQ(judge(e).code, 75);
  EXPECT_EQ(judge(ended_with(75)).cause, Cause::stopped);
  e.reason = reason(3, "numerics");
  EXPECT_EQ(judge(e).cause, Cause::numerics);
}

TEST(Verdict, ASecondSignalThatPreventsTheSaveIsNoRequeue) {
  Evidence e = ended_with(137);
  e.stop_asked = true;
  e.end_signal = SIGINT;
  e.step = 12;
  EXPECT_EQ(judge(e).cause, Cause::stopped);
  EXPECT_EQ(judge(e).code, 128 + SIGINT);
  EXPECT_EQ(
      judge(e).what,
      "not saved: a second signal (SIGINT) ended the ranks at once; the last step was 12, and "
      "there is no checkpoint: the next start begins at step 0");
  e.durable_step = 10;
  EXPECT_NE(judge(e).what.find("the newest checkpoint is step 10: 2 steps are lost"),
            std::string::npos)
      << judge(e).what;
  e.durable_step = 11;
  EXPECT_NE(judge(e).what.find(": 1 step is lost"), std::string::npos) << judge(e).what;
  // The ranks were faster than the second signal.
  e.reason = reason(75, "signal");
  EXPECT_EQ(judge(e).code, 75);
}

TEST(Verdict, AStopWithoutAReportedSaveSaysSo) {
  Evidence e = ended_with(137);
  e.stop_asked = true;
  e.step = 12;
  EXPECT_EQ(judge(e).code, 75);
  EXPECT_NE(judge(e).what.find("ended without reporting a save; the last step was 12, and there"),
            std::string::npos)
      << judge(e).what;
}

// A script that requeues after code 75 relies on the save.
TEST(Verdict, AStopThatCouldNotSaveSaysSo) {
  Evidence e = ended_with(74);
  e.stop_asked = true;
  e.reason = reason(74, "io");
  e.reason->message = "step 120 is done but could not be saved";
  EXPECT_EQ(judge(e).cause, Cause::stopped);
  EXPECT_EQ(judge(e).code, 74);
  EXPECT_NE(judge(e).what.find("could not be saved"), std::string::npos);
}

TEST(Verdict, AMessageOfSeveralLinesIsToldWhole) {
  Evidence e = ended_with(1);
  e.reason = reason(2, "config");
  e.reason->message = "of another run:\n  train.steps: 1, 2\n  train.seed: 3, 4\nGo back";
  EXPECT_NE(judge(e).what.find("of another run: train.steps: 1, 2; train.seed: 3, 4; Go back"),
            std::string::npos);
}

TEST(Verdict, DevicesDisksAndStarts) {
  Evidence e = ended_with(1);
  e.reason = reason(76, "device");
  EXPECT_EQ(judge(e).cause, Cause::device);
  e.reason = reason(74, "io");
  EXPECT_EQ(judge(e).cause, Cause::io);
  EXPECT_FALSE(is_final(judge(e).cause));
  Evidence start = ended_with(1);
  start.all_ranks_seen = false;
  EXPECT_EQ(judge(start).cause, Cause::start);
}

TEST(ExitReason, IsReadOrRefused) {
  const auto good = parse_exit_reason(
      R"({"code":85,"kind":"hang","message":"m","rank":3,"host":"h","signal":0,"step":12,
          "phase":"train","time":1.5})");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->rank, 3);
  EXPECT_EQ(good->step, 12);
  for (const char* bad : {"", "{}", "[]", R"({"code":"x"})", R"({"code":-1,"kind":"a"})",
                          R"({"code":85,"kind":"hang","message":5})"}) {
    EXPECT_FALSE(parse_exit_reason(bad)) << bad;
  }
}

}  // namespace
}  // namespace trireme
