#include "slurm/policy/course.h"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// A course with its clock, its agents played by the test.
class Play {
 public:
  Play(CoursePlan plan, int nodes, const std::map<std::string, std::string>& excluded = {})
      : ranks_a_node_(plan.ranks_a_node), course_(std::move(plan), specs(nodes), excluded) {}

  Actions feed(const Event& event) {
    Actions actions = course_.on(event, now);
    log.insert(log.end(), actions.begin(), actions.end());
    return actions;
  }
  // Time passes; those agents that live report.
  void pass(double seconds) {
    for (double left = seconds; left > 0; left -= 1) {
      now += std::min(left, 1.0);
      for (const std::string& node : alive) {
        report(node);
      }
      feed(Tick{});
    }
  }
  void come_up(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      alive.push_back(node);
      report(node);
    }
  }
  // The node's report: its ranks as the test has them.
  void report(const std::string& node) {
    AgentReport r;
    r.settled = true;
    r.healthy = unfit != node;
    r.trouble = "tired";
    r.cleared = cleared[node];
    r.memory_step = memory_step;
    r.oom_kills = oom_kills;
    for (const RankState& rank : ranks[node]) {
      r.ranks.push_back(rank);
    }
    feed(AgentHeard{node, r});
  }
  // Ranks of the current attempt on these nodes, at work.
  void ranks_work(const std::vector<std::string>& nodes) {
    int number = 0;
    for (const std::string& node : nodes) {
      ranks[node].clear();
      for (int i = 0; i < ranks_a_node_; ++i) {
        RankState rank;
        rank.page.pid = 100 + number;
        rank.page.rank = number++;
        rank.page.generation = course_.generation();
        rank.page.phase = ProgressPhase::train;
        rank.page.deadline_seconds = 30;
        rank.state = 'S';
        ranks[node].push_back(rank);
      }
    }
    for (const std::string& node : nodes) {
      report(node);
    }
  }
  // The launcher's end, and old ranks gone everywhere.
  void ends(std::optional<int> code, bool done = false, std::int64_t durable = -1) {
    feed(LauncherEnded{code, reason, done, durable});
    for (const std::string& node : alive) {
      cleared[node] = course_.generation() + 1;
    }
    for (const std::string& node : std::vector<std::string>(alive)) {
      report(node);
    }
  }
  void dies(const std::string& node) {
    std::erase(alive, node);
    feed(AgentLost{node, "its connection is closed"});
  }

  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> found;
    for (const Action& action : log) {
      if (const auto* one = std::get_if<Kind>(&action)) {
        found.push_back(*one);
      }
    }
    return found;
  }
  std::vector<std::string> last_nodes() const {
    std::vector<std::string> names;
    const std::vector<LaunchRanks> launches = all<LaunchRanks>();
    for (const NodeSpec& node : launches.back().nodes) {
      names.push_back(node.name);
    }
    return names;
  }
  int code() const { return all<Finish>().empty() ? -1 : all<Finish>().front().code; }
  std::string last_cause() const {
    std::string cause;
    for (const Note& note : all<Note>()) {
      cause = note.event == "attempt_end" ? note.fields.at("cause").get<std::string>() : cause;
    }
    return cause;
  }
  const Course& course() const { return course_; }

  double now = 0;
  std::vector<std::string> alive;
  std::string unfit;
  std::map<std::string, std::int64_t> cleared;
  std::map<std::string, std::vector<RankState>> ranks;
  std::int64_t memory_step = -1;
  std::int64_t oom_kills = 7;  // of the machine's past
  std::optional<StatedReason> reason;
  Actions log;

 private:
  static std::vector<NodeSpec> specs(int count) {
    std::vector<NodeSpec> nodes;
    for (int i = 1; i <= count; ++i) {
      nodes.push_back({.name = "n" + std::to_string(i)});
    }
    return nodes;
  }
  int ranks_a_node_;
  Course course_;
};

using Names = std::vector<std::string>;

CoursePlan two_nodes() {
  CoursePlan plan;
  plan.nodes_wanted = plan.least_nodes = 2;
  plan.ranks_a_node = 2;
  return plan;
}

// Two nodes at work, a spare ready.
Play at_work(CoursePlan plan = two_nodes()) {
  Play play(std::move(plan), 3);
  play.feed(Started{});
  play.come_up({"n1", "n2", "n3"});
  play.ranks_work({"n1", "n2"});
  return play;
}

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
    EXPECT_EQ(play.code(), in_slurm ? 75 : 76);
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
  EXPECT_EQ(play.all<LaunchRanks>()[1].generation, 2);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
}

TEST(Course, NewRanksWaitUntilOldOnesAreGone) {
  Play play = at_work();
  play.feed(LauncherEnded{137, std::nullopt, false, -1});
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

// mpirun that does not notice that a rank has died.
TEST(Course, ALauncherThatGoesOnIsKilled) {
  Play play = at_work();
  play.ranks["n1"][1].gone = true;
  play.report("n1");
  play.pass(1);
  EXPECT_TRUE(play.all<KillRanks>().empty());
  play.pass(3);
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.last_cause(), "process_death");
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
  play.feed(LauncherEnded{205, std::nullopt, false, -1});
  play.cleared = {{"n1", 2}, {"n3", 2}};
  play.pass(7);  // no agent comes up on n2
  EXPECT_EQ(play.last_cause(), "node_death");
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
  EXPECT_EQ(play.all<BlameNode>()[0].node, "n2");
  // It flaps back.
  play.come_up({"n2"});
  EXPECT_EQ(play.all<DropAgent>().back().node, "n2");
  play.ranks_work({"n1", "n3"});
  play.ends(137);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
}

// A blackhole: no reset, no end of mpirun.
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
  play.feed(LauncherEnded{205, std::nullopt, false, -1});
  play.cleared = {{"n1", 2}, {"n2", 2}, {"n4", 2}};
  play.pass(7);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n2"}));
}

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

TEST(Course, AskedTwiceItEnds) {
  Play play = at_work();
  play.feed(StopAsked{SIGTERM});
  play.feed(StopAsked{SIGTERM});
  EXPECT_EQ(play.all<KillRanks>().size(), 1U);
  play.ends(137);
  EXPECT_EQ(play.code(), 75);
}

TEST(Course, AskedToStopBetweenAttemptsItStartsNoOther) {
  Play play = at_work();
  play.feed(LauncherEnded{137, std::nullopt, false, -1});
  play.feed(StopAsked{SIGUSR1});
  EXPECT_EQ(play.code(), 75);
  EXPECT_EQ(play.all<LaunchRanks>().size(), 1U);
}

TEST(Course, ADevicesFaultSendsItsNodeAwayAtOnce) {
  Play play = at_work();
  play.reason = StatedReason{.code = 76, .kind = "device", .message = "XID 79", .rank = 3};
  play.ends(76);
  EXPECT_EQ(play.last_nodes(), (Names{"n1", "n3"}));
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

// Pages of an attempt before are nobody's death.
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
