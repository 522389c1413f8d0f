#include "slurm/agent/agent.h"

#include <csignal>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slurm/agent/node_folder.h"
#include "slurm/process/child.h"
#include "slurm/wire/gate.h"
#include "slurm/wire/secret.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// If the agent does not understand the supervisor's orders, it still removes everything of the
// launch from the node.
TEST(Agent, CleansUpAfterABadFrame) {
  const std::string launch = fmt::format("bad{}", ::getpid());
  const std::string secret = fresh_secret();
  Gate supervisor("127.0.0.1", {}, secret);
  Child rank(
      {.argv = {"sleep", "60"},
       .environment = {
           {"TRIREME_LAUNCH_ID", launch}, {"TRIREME_NODE", "n1"}, {"TRIREME_GENERATION", "1"}}});
  const pid_t agent = ::fork();
  if (agent == 0) {
    ::_exit(run_agent({.launch = launch,
                       .node = "n1",
                       .addresses = {"127.0.0.1"},
                       .port = supervisor.port(),
                       .secret = secret}));
  }
  std::vector<Gate::Caller> callers;
  for (int i = 0; i < 2000 && callers.empty(); ++i) {
    callers = supervisor.look();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_EQ(callers.size(), 1U);
  callers[0].connection.send(callers[0].welcome);
  EXPECT_TRUE(std::filesystem::exists(node_folder(launch, "n1")));
  callers[0].connection.send("{}");
  int status = 0;
  ::waitpid(agent, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::bad_data));
  EXPECT_FALSE(std::filesystem::exists(node_folder(launch, "n1")));
  EXPECT_EQ(rank.wait(10), 128 + SIGKILL);
}

}  // namespace
}  // namespace trireme
