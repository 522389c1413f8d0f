#include "slurm/policy/course.h"

#include <gtest/gtest.h>

#include "tests/slurm/policy/course_play.h"

namespace trireme {
namespace {

TEST(Course, StartsWhenAllAreReadyAndEndsWhenDone) {
  Play play = at_work();
  EXPECT_EQ(play.all<StartAgent>().size(), 3U);
  ASSERT_EQ(play.all<LaunchRanks>().size(), 1U);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
  EXPECT_EQ(play.all<SetPartner>()[0].partner, "n2");
  play.ends(0, true);
  EXPECT_EQ(play.code(), 0);
  EXPECT_TRUE(play.course().over());
}

TEST(Course, ASlowSpareKeepsNobodyWaitingForLong) {
  Play play(two_nodes(), 3);
  play.feed(Started{});
  play.come_up({"n1", "n2"});
  EXPECT_TRUE(play.all<LaunchRanks>().empty());
  play.pass(3);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
}

// The spare's health check may take as long as those of the other nodes.
TEST(Course, ASlowSpareIsWaitedForBesideTheWork) {
  Play play(two_nodes(), 3);
  play.feed(Started{});
  play.come_up({"n1", "n2"});
  play.pass(3);
  play.ranks_work({"n1", "n2"});
  play.pass(50);
  EXPECT_TRUE(play.all<BlameNode>().empty());
  play.come_up({"n3"});
  EXPECT_EQ(play.course().ready_nodes(), (Names{"n1", "n2", "n3"}));
}

TEST(Course, AnUnfitNodeIsLeftOutAndASpareTakesItsPlace) {
  Play play(two_nodes(), 3);
  play.feed(Started{});
  play.unfit = "n1";
  play.come_up({"n1", "n2", "n3"});
  EXPECT_EQ(play.last_nodes(), (Names{"n2", "n3"}));
  ASSERT_EQ(play.all<BlameNode>().size(), 1U);
  EXPECT_EQ(play.all<BlameNode>()[0].node, "n1");
}

TEST(Course, NodesOfTheSiteListAreNotEvenAsked) {
  Play play(two_nodes(), 3, {{"n2", "bad memory"}});
  play.feed(Started{});
  play.come_up({"n1", "n3"});
  EXPECT_EQ(play.all<StartAgent>().size(), 2U);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
}

TEST(Course, TooFewNodesNeverStartAPart) {
  for (const bool in_slurm : {false, true}) {
    CoursePlan plan = two_nodes();
    plan.in_slurm = in_slurm;
    Play play(plan, 2);
    play.feed(Started{});
    play.come_up({"n1"});
    play.pass(70);
    EXPECT_TRUE(play.all<LaunchRanks>().empty());
    EXPECT_EQ(play.code(), 76);
  }
}

TEST(Course, ADeadRankIsRelaunchedOnTheSameNodes) {
  Play play = at_work();
  play.ranks["n2"][0].gone = true;
  play.report("n2");
  play.now += 1;
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "process_death");
  ASSERT_EQ(play.all<LaunchRanks>().size(), 2U);
  EXPECT_EQ(play.all<LaunchRanks>()[1].attempt, 2);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
}

TEST(Course, NewRanksWaitUntilOldOnesAreGone) {
  Play play = at_work();
  play.feed(LauncherEnded{137});
  play.report("n1");
  play.report("n2");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
  play.cleared = {{"n1", 2}};
  play.report("n1");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
  play.cleared = {{"n1", 2}, {"n2", 2}};
  play.report("n2");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 2U);
}

// mpirun does not notice that a rank has died.
TEST(Course, ALauncherThatGoesOnIsKilled) {
  Play play = at_work();
  play.ranks["n1"][1].gone = true;
  play.ranks["n1"][1].page.exit_code = 76;
  play.report("n1");
  play.pass(1);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(3);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "process_death");
}

// mpirun waits for a second before it ends the other ranks, and for another before it ends itself.
TEST(Course, ARankThatWasKilledIsNotWaitedFor) {
  Play play = at_work();
  play.ranks["n1"][1].gone = true;
  play.report("n1");
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(1);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
}

TEST(Course, AHangIsEndedBeyondItsDeadlineAndSlack) {
  Play play = at_work();
  play.ranks["n1"][0].age = 34;
  play.report("n1");
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.ranks["n1"][0].age = 36;
  play.ranks["n2"][1].age = 36;
  play.ranks["n2"][1].state = 'T';
  play.report("n1");
  ASSERT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "hang");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 2U);
}

TEST(Course, AStartIsGivenTwentyTimesWhatOneTookBefore) {
  Play play = at_work();
  EXPECT_EQ(play.all<LaunchRanks>()[0].start_deadline, 0) << "nothing is known yet";
  const auto relaunch_after = [&](double start_seconds, std::int64_t durable) {
    RankState& rank = play.ranks["n1"][0];
    rank.page.spent_ns[static_cast<std::size_t>(ProgressPhase::start)] =
        static_cast<std::int64_t>(1e9 * start_seconds);
    rank.page.first_step_ns = 1;
    play.report("n1");
    play.ends(85, false, durable);
    play.ranks_work({"n1", "n2"});
    return play.all<LaunchRanks>().back().start_deadline;
  };
  EXPECT_EQ(relaunch_after(0.5, 1), 60) << "the least";
  EXPECT_EQ(relaunch_after(9, 2), 180);
  EXPECT_EQ(relaunch_after(1, 3), 180) << "of the longest";
  EXPECT_EQ(relaunch_after(200, 4), 600) << "the most";
}

// The supervisor was blocked on a file server or its job was suspended, so the reports of that time
// are still unread.
TEST(Course, TimeInWhichNobodyListenedIsNobodysSilence) {
  Play play = at_work();
  play.now += 100;
  play.feed(Tick{});
  EXPECT_TRUE(play.all<BlameNode>().empty());
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.alive = {"n1"};
  play.pass(9);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(3);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U) << "n2 is silent while others are heard";
}

TEST(Course, RanksAreGivenTheirTimeToComeUpAfterAStall) {
  Play play = at_work();
  play.ends(137);
  for (auto& [node, ranks] : play.ranks) {
    ranks.clear();
  }
  play.now += 200;  // while the supervisor read the run's files
  play.feed(Tick{});
  play.pass(100);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(30);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
}

// Around a save, other ranks may wait half an hour for a disk, but not for a stopped rank.
TEST(Course, AStoppedRankIsNotGivenALongDeadline) {
  Play play = at_work();
  RankState& rank = play.ranks["n2"][1];
  rank.page.deadline_seconds = 1800;
  rank.state = 'T';
  rank.age = 30;
  play.pass(20);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  rank.age = 70;
  rank.state = 'S';  // continues, but has not changed its page yet
  play.pass(20);
  rank.state = 'T';
  play.pass(4);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(4);
  ASSERT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "hang");
}

TEST(Course, APhaseWithoutADeadlineNeverHangs) {
  Play play = at_work();
  play.ranks["n1"][0].age = 1e6;
  play.ranks["n1"][0].page.deadline_seconds = 0;
  play.report("n1");
  EXPECT_TRUE(play.all<KillRanks>().empty());
}

TEST(Course, RanksThatNeverComeUpAreNotWaitedForForEver) {
  Play play(two_nodes(), 2);
  play.feed(Started{});
  play.come_up({"n1", "n2"});
  play.pass(130);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "start");
}

// If this process is killed, time that is not in the journal is assigned to another cause. That
// must be a tenth of the attempt at most.
TEST(Course, TellsTheJournalSoonWhereRankZeroIs) {
  Play play = at_work();
  const auto reported = [&] {
    int count = 0;
    for (const Note& note : play.all<Note>()) {
      count += note.event == "status" ? 1 : 0;
    }
    return count;
  };
  play.pass(3);
  EXPECT_GE(reported(), 1);
  play.pass(3600);
  EXPECT_LT(reported(), 200);
}

TEST(Course, AnAgentThatDiesGetsASuccessorAndTheRanksGoOn) {
  Play play = at_work();
  play.dies("n2");
  EXPECT_EQ(play.all<StartAgent>().back().node, "n2");
  EXPECT_FALSE(play.all<StartAgent>().back().check_health);
  play.come_up({"n2"});
  play.pass(20);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
  play.ends(0, true);
  EXPECT_EQ(play.code(), 0);
}

// The new agent starts after the other agents were ordered to end old ranks.
TEST(Course, ALateSuccessorIsToldToClear) {
  Play play = at_work();
  play.dies("n2");
  play.feed(LauncherEnded{137});
  play.come_up({"n2"});
  EXPECT_EQ(play.all<ClearNode>().back().node, "n2");
  play.cleared = {{"n1", 2}, {"n2", 2}};
  play.report("n2");
  play.report("n1");
  EXPECT_EQ(play.all<LaunchRanks>().size(), 2U);
}

TEST(Course, AnAgentThatKeepsDyingCostsItsNode) {
  Play play = at_work();
  for (int i = 0; i < 4; ++i) {
    play.dies("n2");
    play.come_up({"n2"});
  }
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
}

TEST(Course, ALostNodeIsReplacedByTheSpareAndStaysOut) {
  Play play = at_work();
  play.dies("n2");
  play.feed(LauncherEnded{205});
  play.cleared = {{"n1", 2}, {"n3", 2}};
  play.pass(7);  // no agent starts on n2
  EXPECT_EQ(play.last_cause(), "node_death");
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
  EXPECT_EQ(play.all<BlameNode>()[0].node, "n2");
  // The lost node reappears.
  play.come_up({"n2"});
  EXPECT_EQ(play.all<DropAgent>().back().node, "n2");
  play.ranks_work({"n1", "n3"});
  play.ends(137);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
}

// The dead node sends no reset, and mpirun does not end.
TEST(Course, ADeadNodesSuccessorIsNotAwaitedIfASpareIsReady) {
  Play play = at_work();
  play.dies("n2");
  play.ends(205);
  play.pass(1);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1);
  play.pass(2);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
  EXPECT_EQ(play.last_cause(), "node_death");
}

TEST(Course, AnAgentThatDiesWithItsRanksMayComeBackIfThereIsNoSpare) {
  Play play = at_work();
  play.dies("n3");
  play.pass(7);  // the spare is lost
  play.dies("n2");
  play.ends(205);
  play.pass(4);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1);
  play.cleared["n2"] = 2;
  play.come_up({"n2"});
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
  EXPECT_EQ(play.last_cause(), "process_death");
}

TEST(Course, ErrorsOfRanksThatLostANodeAreNotAwaited) {
  Play play = at_work();
  play.dies("n2");
  play.ranks["n1"][0].gone = true;
  play.ranks["n1"][0].page.exit_code = 85;
  play.pass(1);
  EXPECT_EQ(play.all<KillRanks>().size(), 0);  // the exit has only been known since this report
  play.pass(1);
  EXPECT_EQ(play.all<KillRanks>().size(), 1);
}

TEST(Course, ASilentNodeIsLostAfterTenSeconds) {
  Play play = at_work();
  std::erase(play.alive, "n2");
  play.pass(10);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(2);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.cleared = {{"n1", 2}};
  play.ends(std::nullopt);
  EXPECT_EQ(play.last_cause(), "node_death");
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
}

TEST(Course, WithoutSparesItGoesOnWithFewerThatFit) {
  CoursePlan plan;
  plan.nodes_wanted = 4;
  plan.least_nodes = 1;
  plan.fits = [](int nodes) { return (nodes & (nodes - 1)) == 0; };
  Play play(plan, 4);
  play.feed(Started{});
  play.come_up({"n1", "n2", "n3", "n4"});
  play.ranks_work({"n1", "n2", "n3", "n4"});
  play.dies("n3");
  play.feed(LauncherEnded{205});
  play.cleared = {{"n1", 2}, {"n2", 2}, {"n4", 2}};
  play.pass(7);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
}

}  // namespace
}  // namespace trireme
