#include "slurm/wire/gate.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/wire/secret.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Raises the limit of open files of this process for its lifetime.
class ManyDescriptors {
 public:
  ManyDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit more = before_;
    more.rlim_cur = std::min<rlim_t>(before_.rlim_max, 8192);
    ::setrlimit(RLIMIT_NOFILE, &more);
    most_ = static_cast<int>(std::min<rlim_t>(more.rlim_cur, 8192));
  }
  ~ManyDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  ManyDescriptors(const ManyDescriptors&) = delete;
  ManyDescriptors& operator=(const ManyDescriptors&) = delete;
  int most() const { return most_; }

 private:
  rlimit before_{};
  int most_ = 0;
};

class GateTest : public testing::Test {
 protected:
  // Runs one turn of the gate's owner. Returns whether poll() reported anything.
  bool turn(int milliseconds = 100) {
    std::vector<pollfd> waiting;
    gate_.add_to(waiting);
    const int ready = ::poll(waiting.data(), waiting.size(), gate_.patience(milliseconds));
    for (Gate::Caller& caller : gate_.look()) {
      caller.connection.send(caller.welcome);
      callers_.push_back(std::move(caller));
    }
    return ready > 0;
  }

  void connect_strangers(int count) {
    for (int i = 0; i < count; ++i) {
      auto stranger = connect_to("127.0.0.1", gate_.port(), 5);
      ASSERT_TRUE(stranger) << i;
      strangers_.push_back(std::move(*stranger));
      if (i % 1000 == 999) {
        turn(0);
      }
    }
  }

  // Returns how many turns an authenticated caller needed to be admitted, or -1 if it was refused.
  int turns_to_let_in() {
    std::atomic<bool> over = false;
    bool is_in = false;
    std::thread agent([&] {
      is_in = call({"127.0.0.1"}, gate_.port(), secret_, {.role = "agent", .node = "n1"}, 30)
                  .has_value();
      over = true;
    });
    int turns = 0;
    while (!over) {
      turn();
      ++turns;
    }
    agent.join();
    return is_in ? turns : -1;
  }

  std::string secret_ = fresh_secret();
  ManyDescriptors many_;
  Gate gate_{"127.0.0.1", {}, secret_};
  std::vector<Connection> strangers_;
  std::vector<Gate::Caller> callers_;
};

TEST_F(GateTest, WhoKnowsTheSecretGetsPastIdleStrangers) {
  connect_strangers(std::min(3000, many_.most() - 600));
  EXPECT_GE(turns_to_let_in(), 0);
  ASSERT_EQ(callers_.size(), 1U);
  EXPECT_EQ(callers_[0].hello.node, "n1");
  EXPECT_LE(gate_.strangers(), Gate::kPlaces);
}

// Counts wake-ups and not time. A poll that times out serves the owner's tick.
TEST_F(GateTest, IdleStrangersWakeNobody) {
  connect_strangers(600);
  int wake_ups = 0;
  for (int ticks = 0; ticks < 3 && wake_ups < 1000; turn() ? ++wake_ups : ++ticks) {
  }
  EXPECT_LT(wake_ups, 100);
}

TEST_F(GateTest, StrangersThatNeverProveThemselvesAreSentAway) {
  connect_strangers(3);
  while (gate_.strangers() < 3) {
    turn();
  }
  // One of them speaks no TLS, which ends it at once, and the others never begin a handshake.
  testing::internal::CaptureStderr();
  strangers_[1].send("x");
  for (int i = 0; i < 1000 && gate_.strangers() > 0; ++i) {
    turn();
  }
  EXPECT_EQ(gate_.strangers(), 0U);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("does not speak TLS"), std::string::npos) << said;
  EXPECT_NE(said.find("no TLS handshake was completed within 5 s"), std::string::npos) << said;
}

TEST_F(GateTest, AWrongProofIsSentAway) {
  std::atomic<bool> over = false;
  std::thread stranger([&] {
    EXPECT_FALSE(call({"127.0.0.1"}, gate_.port(), fresh_secret(), {.role = "agent"}, 5));
    over = true;
  });
  while (!over) {
    turn(10);
  }
  stranger.join();
  EXPECT_TRUE(callers_.empty());
}

// Even with the secret, processes of another user do not belong to a launch.
TEST_F(GateTest, AnotherUserOfThisMachineIsSentAway) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs to connect as another user: run as root";
  }
  auto own = connect_to("127.0.0.1", gate_.port(), 5);
  turn();
  if (PeerUsers users; users.user_of(own->fd()) != ::getuid()) {
    GTEST_SKIP()
        << "needs a kernel that reports the user of a connection: load the module tcp_diag";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_other = ::setuid(65534) == 0;
    const bool is_in =
        call({"127.0.0.1"}, gate_.port(), secret_, {.role = "agent", .node = "n1"}, 5).has_value();
    ::_exit(is_other && !is_in ? 0 : 1);
  }
  int status = -1;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    turn(10);
  }
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(callers_.empty());
}

TEST(Listener, TakesAFreePortOfARange) {
  const int free_port = Listener("127.0.0.1").port();
  const PortRange range{free_port, std::min(free_port + 20, 65535)};
  const Listener first("127.0.0.1", range);
  const Listener second("127.0.0.1", range);
  EXPECT_GE(first.port(), range.first);
  EXPECT_GT(second.port(), first.port());
  EXPECT_LE(second.port(), range.last);
  EXPECT_THROW(Listener("127.0.0.1", {first.port(), first.port()}), IoError);
}

TEST(Listener, RangesOfPortsAreReadOrRefused) {
  EXPECT_EQ(parse_port_range("").first, 0);
  EXPECT_EQ(parse_port_range("47000-47099").last, 47099);
  EXPECT_EQ(parse_port_range("47000").last, 47000);
  for (const char* bad :
       {"x", "0-5", "5-4", "1-65536", "1-", "-5", "1-2-3", "1 - 2", "99999999999"}) {
    EXPECT_THROW((void)parse_port_range(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace trireme
