// Tests the fleet. The processes that it starts are a script that records its words, and the test
// itself makes the connections of the agents.
#include "slurm/launch/fleet.h"

#include <fstream>
#include <future>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "slurm/wire/handshake.h"
#include "slurm/wire/secret.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Order::Kind;

class FleetTest : public testing::Test {
 protected:
  FleetTest() {
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
    // The word after --node is the sixth of an agent.
    std::ofstream(script_) << "#!/bin/sh\n[ \"$6\" != bad ] || exit 3\n"
                              "{ printf '%s\\n' \"$@\"; head -n 1; } > " +
                                  pipe_.string() + "\nexec sleep 600\n";
    fs::permissions(script_, fs::perms::owner_all);
    make("");
  }
  void make(const std::string& health, PortRange ports = {}) {
    LaunchSetting setting;
    setting.program = script_.string();
    setting.launch = "00ff";
    setting.ports = ports;
    fleet_ = std::make_unique<Fleet>(setting, secret_, health);
  }

  // Returns the words of the process that was started last, and the first line of its input.
  std::vector<std::string> words() {
    std::ifstream pipe(pipe_);
    std::vector<std::string> all;
    for (std::string line; std::getline(pipe, line);) {
      all.push_back(line);
    }
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      port_ = all[i] == "--port" ? std::stoi(all[i + 1]) : port_;
    }
    return all;
  }
  void start_agent(const std::string& node) {
    fleet_->start_agent(node, true);
    (void)words();
  }
  // Lets the fleet do what is to be done, and adds its news.
  void turn() {
    std::vector<pollfd> waiting;
    fleet_->add_to(waiting);
    ::poll(waiting.data(), waiting.size(), fleet_->patience(20));
    for (FleetNews& news : fleet_->look()) {
      news_.push_back(std::move(news));
    }
  }
  FleetNews next_news() {
    while (news_.empty()) {
      turn();
    }
    FleetNews news = std::move(news_.front());
    news_.erase(news_.begin());
    return news;
  }
  std::optional<Connection> join(const Hello& hello) {
    auto called = std::async(std::launch::async,
                             [&] { return call({"127.0.0.1"}, port_, secret_, hello, 30); });
    while (called.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      turn();
    }
    return called.get();
  }
  Connection agent(const std::string& node, int port = 0) {
    auto connection =
        join({.role = "agent", .node = node, .port = port, .addresses = {"10.0.0.1", node}});
    EXPECT_TRUE(connection.has_value());
    return std::move(*connection);
  }
  static Order next_order(Connection& connection) {
    const auto text = connection.receive_one(30);
    EXPECT_TRUE(text.has_value());
    return text ? parse_order(*text) : Order{};
  }

  TempFolder folder_;
  const fs::path script_ = folder_.path() / "trireme program";
  const fs::path pipe_ = folder_.path() / "pipe";
  const std::string secret_ = fresh_secret();
  int port_ = 0;
  std::vector<FleetNews> news_;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetTest, AgentsGetTheirWordsAndTheSecretOnStandardInput) {
  fleet_->start_agent("n1", true);
  const std::vector<std::string> plain = words();
  EXPECT_THAT(plain, ElementsAre("launch", "agent", "--launch", "00ff", "--node", "n1", "--port",
                                 std::to_string(port_), "--addresses", "127.0.0.1", secret_));
  make("check 'it'", {40000, 47999});
  fleet_->start_agent("n2", true);
  const std::vector<std::string> checked = words();
  EXPECT_THAT(std::vector<std::string>(checked.begin() + 10, checked.end()),
              ElementsAre("--ports", "40000-47999", "--health", "check 'it'", secret_));
  EXPECT_GE(port_, 40000);
  EXPECT_LE(port_, 47999);
  fleet_->start_agent("n3", false);
  EXPECT_EQ(words().size(), 13U);  // without the health check
}

TEST_F(FleetTest, ReportsAndOrdersReachTheirNode) {
  start_agent("n1");
  start_agent("n2");
  Connection first = agent("n1");
  Connection second = agent("n2");
  AgentReport report;
  report.settled = true;
  report.oom_kills = 5;
  second.send(to_json(report));
  const FleetNews news = next_news();
  EXPECT_EQ(news.node, "n2");
  ASSERT_TRUE(news.report.has_value());
  EXPECT_TRUE(news.report->settled);
  EXPECT_EQ(news.report->oom_kills, 5);
  fleet_->order("nowhere", {.kind = Kind::bye});
  fleet_->order("n2", {.kind = Kind::clear, .attempt = 4});
  const Order order = next_order(second);
  EXPECT_EQ(order.kind, Kind::clear);
  EXPECT_EQ(order.attempt, 4);
  fleet_->ping_all();
  EXPECT_EQ(next_order(first).kind, Kind::ping);
  EXPECT_EQ(next_order(second).kind, Kind::ping);
}

TEST_F(FleetTest, CallersOfNodesThatAreNotUsedAreRefused) {
  start_agent("n1");
  EXPECT_FALSE(join({.role = "agent", .node = "n9"}).has_value());
  EXPECT_FALSE(join({.role = "copy", .node = "n1"}).has_value());
  EXPECT_TRUE(news_.empty());
}

TEST_F(FleetTest, APartnerIsKnownByItsPortOnceItIsConnected) {
  start_agent("n1");
  start_agent("n2");
  Connection first = agent("n1");
  fleet_->set_partner("n1", "n2");
  EXPECT_EQ(next_order(first).port, 0);  // not connected yet
  Connection second = agent("n2", 4711);
  Order order = next_order(first);
  EXPECT_EQ(order.kind, Kind::partner);
  EXPECT_EQ(order.node, "n2");
  EXPECT_EQ(order.port, 4711);
  EXPECT_THAT(order.addresses, ElementsAre("10.0.0.1", "n2"));
  // A new agent of the partner has another port, and a new agent of the node gets the order again.
  start_agent("n2");
  Connection third = agent("n2", 4712);
  EXPECT_EQ(next_order(first).port, 4712);
  start_agent("n1");
  Connection fourth = agent("n1");
  EXPECT_EQ(next_order(fourth).port, 4712);
  fleet_->set_partner("n1", "");
  order = next_order(fourth);
  EXPECT_EQ(order.kind, Kind::partner);
  EXPECT_EQ(order.port, 0);
}

TEST_F(FleetTest, SaysWhyAnAgentIsLost) {
  start_agent("n1");
  start_agent("n2");
  agent("n1").send("{}");
  FleetNews news = next_news();
  EXPECT_EQ(news.node, "n1");
  EXPECT_FALSE(news.report.has_value());
  EXPECT_NE(news.why, "");
  { const Connection closed = agent("n2"); }
  news = next_news();
  EXPECT_EQ(news.node, "n2");
  EXPECT_FALSE(news.report.has_value());
  EXPECT_EQ(news.why, "its connection was closed");
  fleet_->start_agent("bad", true);
  news = next_news();
  EXPECT_EQ(news.node, "bad");
  EXPECT_EQ(news.why, "its process exited with code 3");
  fs::remove(script_);
  fleet_->start_agent("n3", true);
  news = next_news();
  EXPECT_EQ(news.node, "n3");
  EXPECT_THAT(news.why, HasSubstr("cannot start " + script_.string()));
  turn();
  EXPECT_TRUE(news_.empty());  // each loss is reported once
}

TEST_F(FleetTest, ADroppedAgentIsToldToGoAndForgotten) {
  start_agent("n1");
  Connection connection = agent("n1");
  fleet_->drop("n1");
  const Order order = next_order(connection);
  EXPECT_EQ(order.kind, Kind::bye);
  EXPECT_EQ(order.attempt, 0);  // the launch goes on
  fleet_->drop("n1");
  fleet_->drop("nowhere");
  EXPECT_FALSE(join({.role = "agent", .node = "n1"}).has_value());
  EXPECT_TRUE(news_.empty());
}

TEST_F(FleetTest, ThereIsOneDeputy) {
  start_agent("n2");
  EXPECT_FALSE(fleet_->has_deputy());
  fleet_->want_deputy("n2", "42_1");
  EXPECT_TRUE(fleet_->has_deputy());
  std::vector<std::string> own = words();
  ASSERT_EQ(own.size(), 11U);
  EXPECT_THAT(std::vector<std::string>(own.begin(), own.begin() + 4),
              ElementsAre("launch", "deputy", "--job", "42_1"));
  EXPECT_THAT(std::vector<std::string>(own.begin() + 8, own.end()),
              ElementsAre("--node", "n2", secret_));
  auto stranger = join({.role = "deputy", .node = "n3"});
  ASSERT_TRUE(stranger.has_value());
  EXPECT_EQ(next_order(*stranger).kind, Kind::bye);
  auto deputy = join({.role = "deputy", .node = "n2"});
  ASSERT_TRUE(deputy.has_value());
  auto second = join({.role = "deputy", .node = "n2"});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(next_order(*second).kind, Kind::bye);
  fleet_->ping_all();
  EXPECT_EQ(next_order(*deputy).kind, Kind::ping);
  fleet_->drop("n1");
  EXPECT_TRUE(fleet_->has_deputy());
  fleet_->drop("n2");
  EXPECT_FALSE(fleet_->has_deputy());
  EXPECT_EQ(next_order(*deputy).kind, Kind::bye);
}

TEST_F(FleetTest, ADeputyThatIsGoneIsMissed) {
  fleet_->want_deputy("n2", "42");
  (void)words();
  { auto deputy = join({.role = "deputy", .node = "n2"}); }
  while (fleet_->has_deputy()) {
    turn();
  }
  fs::remove(script_);
  fleet_->want_deputy("n2", "42");
  EXPECT_FALSE(fleet_->has_deputy());
}

// Attempt 1 tells an agent that the launch is over.
TEST_F(FleetTest, AtTheEndAllAreDismissed) {
  start_agent("n1");
  start_agent("n2");
  Connection first = agent("n1");
  Connection second = agent("n2");
  auto dismissed = std::async(std::launch::async, [&] { fleet_->dismiss(600); });
  for (Connection* connection : {&first, &second}) {
    const Order order = next_order(*connection);
    EXPECT_EQ(order.kind, Kind::bye);
    EXPECT_EQ(order.attempt, 1);
  }
  { const Connection closed = std::move(first); }
  EXPECT_EQ(dismissed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  { const Connection closed = std::move(second); }
  dismissed.get();
  fleet_->ping_all();
  turn();
  EXPECT_TRUE(news_.empty());
}

// An agent that dies is started once more to clean up, but not again.
TEST_F(FleetTest, AnAgentThatCannotStartDoesNotDelayTheEnd) {
  fleet_->start_agent("bad", true);
  fleet_->dismiss(600);
  turn();
  EXPECT_TRUE(news_.empty());
}

}  // namespace
}  // namespace trireme
