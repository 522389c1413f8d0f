#include "slurm/wire/messages.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

AgentReport a_report() {
  AgentReport report;
  report.healthy = true;
  report.settled = true;
  report.trouble = "none";
  report.oom_kills = 2;
  report.cleared = 4;
  report.memory_step = {4, 30};
  RankState rank;
  rank.page.pid = 4711;
  rank.page.rank = 3;
  rank.page.attempt = 4;
  rank.page.step = 31;
  rank.page.begun_at = 20;
  rank.page.phase = ProgressPhase::checkpoint;
  rank.page.deadline_seconds = 600;
  rank.page.created_ns = 5;
  rank.page.changed_ns = 50;
  rank.page.first_step_ns = 40;
  rank.page.spent_ns = {1, 2, 3, 4, 5, 6};
  rank.page.exit_code = 74;
  rank.age = 1.5;
  rank.lived = 20;
  rank.gone = true;
  rank.state = 'T';
  report.ranks = {rank};
  return report;
}

TEST(Messages, ReportsComeBack) {
  const AgentReport r = parse_agent_report(to_json(a_report()));
  EXPECT_EQ(to_json(r), to_json(a_report()));
  EXPECT_EQ(r.memory_step, (SavedStep{4, 30}));
  ASSERT_EQ(r.ranks.size(), 1U);
  EXPECT_EQ(r.ranks[0].page.phase, ProgressPhase::checkpoint);
  EXPECT_EQ(r.ranks[0].state, 'T');
  EXPECT_TRUE(r.ranks[0].gone);
  EXPECT_EQ(r.ranks[0].page.exit_code, 74);
  EXPECT_EQ(parse_agent_report(to_json(AgentReport{})).memory_step, SavedStep{});
}

TEST(Messages, OrdersAndGreetingsComeBack) {
  const Order order = parse_order(to_json(Order{.kind = Order::Kind::partner,
                                                .attempt = 3,
                                                .node = "n2",
                                                .port = 4000,
                                                .addresses = {"10.0.0.1", "127.0.0.1"}}));
  EXPECT_EQ(order.kind, Order::Kind::partner);
  EXPECT_EQ(order.addresses.size(), 2U);
  const Hello hello = parse_hello(to_json(Hello{.role = "agent", .node = "n1", .nonce = "a"}));
  EXPECT_EQ(hello.node, "n1");
  EXPECT_EQ(parse_challenge(to_json(Challenge{"abc"})).nonce, "abc");
  EXPECT_EQ(parse_welcome(to_json(Welcome{"def"})).proof, "def");
}

TEST(Messages, OneKindIsNotTakenForAnother) {
  EXPECT_THROW((void)parse_order(to_json(a_report())), DataError);
  EXPECT_THROW((void)parse_agent_report(to_json(Order{})), DataError);
}

TEST(Messages, AnotherVersionSaysWhatToDo) {
  try {
    (void)parse_order(R"({"version": 9, "kind": "order"})");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("same trireme on all nodes"), std::string::npos);
  }
}

// A message with a changed, missing or duplicated byte is either parsed or refused with DataError.
TEST(Messages, HostileBytesAreRefused) {
  const std::string good = to_json(a_report());
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const std::string& bad :
         {good.substr(0, at), good.substr(0, at) + "\xff" + good.substr(at + 1),
          good.substr(0, at) + "9" + good.substr(at + 1),
          good.substr(0, at) + "-" + good.substr(at), good.substr(0, at) + good.substr(at + 1)}) {
      try {
        (void)parse_agent_report(bad);
      } catch (const DataError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size()));
  for (const char* bad : {"", "[]", "{}", "null", "[[[[[[", "{\"version\":1}",
                          "{\"version\":1,\"kind\":\"order\",\"order\":\"dance\"}"}) {
    EXPECT_THROW((void)parse_order(bad), DataError) << bad;
    EXPECT_THROW((void)parse_hello(bad), DataError) << bad;
  }
}

}  // namespace
}  // namespace trireme
