#include "src/study/link_rounds.h"

#include <map>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "src/study/acceptance.h"

namespace trireme {
namespace {

std::vector<std::string> nodes(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(fmt::format("n{}", i));
  }
  return names;
}

int number_of(const std::string& node) { return std::stoi(node.substr(1)); }

// Every node has a partner in each round, except for one if their number is odd; no pair repeats.
void expect_fair(const NodePairRounds& rounds, int count) {
  std::set<NodePair> seen;
  for (const auto& round : rounds) {
    std::set<std::string> busy;
    for (const NodePair& pair : round) {
      EXPECT_TRUE(busy.insert(pair.first).second && busy.insert(pair.second).second);
      EXPECT_TRUE(seen.insert(std::minmax(pair.first, pair.second)).second);
    }
    EXPECT_EQ(busy.size(), static_cast<std::size_t>(count / 2 * 2));
  }
}

TEST(LinkRounds, AllPairsOfFewNodes) {
  for (const int count : {1, 2, 3, 4, 31, 32}) {
    const NodePairRounds rounds = link_rounds(nodes(count), 0);
    expect_fair(rounds, count);
    std::size_t pairs = 0;
    for (const auto& round : rounds) {
      pairs += round.size();
    }
    EXPECT_EQ(pairs, static_cast<std::size_t>(count * (count - 1) / 2));
  }
}

TEST(LinkRounds, FewRoundsOfManyNodes) {
  const std::map<int, std::size_t> expected = {{33, 12}, {64, 12}, {65, 14}, {100, 14}, {1000, 20}};
  for (const auto& [count, wanted] : expected) {
    const NodePairRounds rounds = link_rounds(nodes(count), 0);
    EXPECT_EQ(rounds.size(), wanted);
    expect_fair(rounds, count);
  }
  EXPECT_EQ(link_rounds(nodes(100), 3).size(), 3U);
  EXPECT_EQ(link_rounds(nodes(100), 5000).size(), 99U);
}

// Nodes of a switch usually have consecutive numbers. Its uplink is measured from several of them.
TEST(LinkRounds, EverySwitchIsLeftInEveryDirection) {
  for (const int count : {40, 64, 100, 257}) {
    const NodePairRounds rounds = link_rounds(nodes(count), 0);
    for (const int ports : {8, 16}) {
      std::map<int, std::set<int>> left_from;  // by switch: its nodes with a link that leaves it
      for (const auto& round : rounds) {
        for (const auto& [a, b] : round) {
          const int x = number_of(a), y = number_of(b);
          if (x / ports != y / ports) {
            left_from[x / ports].insert(x);
            left_from[y / ports].insert(y);
          }
        }
      }
      for (int leaf = 0; leaf * ports < count; ++leaf) {
        EXPECT_EQ(left_from[leaf].size(),
                  static_cast<std::size_t>(std::min(ports, count - leaf * ports)));
      }
    }
  }
}

AcceptSubject measured(const NodePair& pair, double seconds) {
  AcceptSubject subject;
  subject.nodes = {pair.first, pair.second};
  subject.measured["time"] = {Better::lower, "s", {seconds}};
  return subject;
}

// One bad adapter among 100 nodes is found with the few rounds and the partners' tests.
TEST(LinkRounds, ABadNodeAmongManyIsFound) {
  AcceptProfile::Demands demands;
  demands.at_least = 80;
  for (const char* culprit : {"n0", "n41", "n99"}) {
    const auto seconds = [&](const NodePair& pair) {
      return pair.first == culprit || pair.second == culprit ? 3.0
                                                             : 1 + 0.001 * number_of(pair.first);
    };
    std::vector<AcceptSubject> links;
    for (const auto& round : link_rounds(nodes(100), 0)) {
      for (const NodePair& pair : round) {
        links.push_back(measured(pair, seconds(pair)));
      }
    }
    const auto tests = partner_tests(judge(links, demands), {});
    ASSERT_FALSE(tests.empty());
    const NodePairRounds rounds = disjoint_rounds(tests);
    EXPECT_LE(rounds.size(), 6U);
    std::vector<AcceptVerdict> verdicts;
    for (const NodePair& pair : tests) {
      links.push_back(measured(pair, seconds(pair)));
      verdicts.push_back(judge(links, demands).back());
      links.pop_back();
    }
    EXPECT_EQ(guilty_ends(tests, verdicts), std::set<std::string>{culprit});
  }
}

TEST(LinkRounds, RoundsOfGivenPairsAreDisjoint) {
  const NodePairRounds rounds =
      disjoint_rounds({{"a", "x"}, {"a", "y"}, {"b", "x"}, {"c", "z"}, {"b", "y"}});
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0], (std::vector<NodePair>{{"a", "x"}, {"c", "z"}, {"b", "y"}}));
  EXPECT_EQ(rounds[1], (std::vector<NodePair>{{"a", "y"}, {"b", "x"}}));
  EXPECT_TRUE(disjoint_rounds({}).empty());
}

}  // namespace
}  // namespace trireme
