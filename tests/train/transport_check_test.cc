#include "src/train/start/transport_check.h"

#include <cstdlib>
#include <functional>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Runs the work in a network namespace with two cables, of which 10.1.0.0/24 is behind one. Returns
// false if this user may not make one.
template <class Work>
bool behind_two_cables(Work work) {
  bool made = false;
  std::thread([&] {
    made = ::unshare(CLONE_NEWNET) == 0;
    if (made) {
      ASSERT_EQ(std::system("ip link set lo up && ip link add wg0 type veth peer name far && "
                            "ip link set wg0 up && ip link set far up && "
                            "ip addr add 10.1.0.1/24 dev wg0"),
                0);
      work();
    }
  }).join();
  return made;
}

// A socket that is connected to another host, to which nothing is sent.
class Connected {
 public:
  explicit Connected(const char* address) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    ::inet_pton(AF_INET, address, &to.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Connected() { ::close(fd_); }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

 private:
  int fd_;
};

// What rank 0 of two ranks on two hosts records.
using Findings = std::vector<nlohmann::ordered_json>;

// Calls `steps` on each rank, with its check.
void on_two_hosts(const SecurityConfig& config, Findings& findings,
                  const std::function<void(TransportCheck&)>& steps) {
  ThreadWorld(2, {"a", "b"}).run([&](Communicator& comm) {
    Log log({.rank = comm.rank(), .ranks = 2, .terminal_level = LogLevel::error});
    TransportCheck::Audit audit;
    if (comm.rank() == 0) {
      audit = [&](std::string_view event, const nlohmann::ordered_json& details) {
        EXPECT_EQ(event, "transport.checked");
        findings.push_back(details);
      };
    }
    TransportCheck check(config, comm, log, audit);
    steps(check);
  });
}

const char* const kSkip = "needs to make a network namespace: run as root with CAP_SYS_ADMIN";

TEST(TransportCheck, RecordsWhatIsUsedOnceAndWhatBreaksTheRuleAlways) {
  const bool made = behind_two_cables([] {
    const SecurityConfig isolated{"isolated", {"10.1.0.0/24"}};
    Findings findings;
    const LinkBook links;
    on_two_hosts(isolated, findings, [&](TransportCheck& check) {
      const Connected allowed("10.1.0.7");
      check.before_connecting();
      check.after_connecting(links);
      check.at_step(1, false);
      check.at_step(2, true);
    });
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0]["obeyed"], true);
    EXPECT_EQ(findings[0]["hosts"], 2);
    EXPECT_EQ(findings[0]["interfaces"], nlohmann::ordered_json({"wg0 (veth)"}));

    findings.clear();
    const SecurityConfig elsewhere{"isolated", {"10.2.0.0/24"}};
    on_two_hosts(elsewhere, findings, [&](TransportCheck& check) {
      check.before_connecting();
      check.at_step(1, false);
      const Connected refused("10.1.0.7");
      check.at_step(2, false);  // neither the first step nor a save
      EXPECT_THAT(message_of<PolicyError>([&] { check.at_step(3, true); }),
                  AllOf(HasSubstr("security.transport is isolated, but (step 3)"),
                        HasSubstr("to 10.1.0.7, which is in none of security.networks"),
                        HasSubstr("point the transports there")));
    });
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0]["obeyed"], false);
    EXPECT_EQ(findings[0]["when"], "step 3");
  });
  if (!made) {
    GTEST_SKIP() << kSkip;
  }
}

TEST(TransportCheck, ATunnelIsMoreThanAName) {
  const bool made = behind_two_cables([] {
    Findings findings;
    on_two_hosts({"tunnel:wg0", {}}, findings, [&](TransportCheck& check) {
      EXPECT_THAT(message_of<PolicyError>([&] { check.before_connecting(); }),
                  HasSubstr("wg0 is of the kind veth, which does not encrypt"));
    });
    EXPECT_EQ(findings.size(), 1U);
  });
  if (!made) {
    GTEST_SKIP() << kSkip;
  }
}

TEST(TransportCheck, LinksOfNcclThatBypassTheKernelCount) {
  LinkBook links;
  links.links = {{"dp", {0, 1, LinkKind::nvlink, false}},
                 {"dp", {0, 2, LinkKind::socket, false}},
                 {"pp", {0, 3, LinkKind::shm, false}}};
  EXPECT_THAT(rdma_links(links), IsEmpty());
  links.links.insert({"dp", {0, 4, LinkKind::infiniband, true}});
  links.links.insert({"tp", {0, 5, LinkKind::plugin, false}});
  EXPECT_THAT(rdma_links(links), ElementsAre(HasSubstr("NCCL's InfiniBand with GPUDirect RDMA"),
                                             HasSubstr("NCCL's ")));
  Findings findings;
  on_two_hosts({"isolated", {"0.0.0.0/1", "128.0.0.0/1"}}, findings,
               [&](TransportCheck& check) { check.after_connecting(links); });
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0]["rdma"].size(), 2U);
  EXPECT_EQ(findings[0]["obeyed"], true);
}

TEST(TransportCheck, AnyChecksNothing) {
  Findings findings;
  LinkBook links;
  links.links.insert({"dp", {0, 4, LinkKind::infiniband, true}});
  on_two_hosts({"any", {}}, findings, [&](TransportCheck& check) {
    check.before_connecting();
    check.after_connecting(links);
    check.at_step(1, true);
  });
  EXPECT_THAT(findings, IsEmpty());
}

}  // namespace
}  // namespace trireme
