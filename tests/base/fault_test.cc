#include "src/base/fault.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/base/some_fault_sites.h"
#include "tests/support/at_faults.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Arms the faults of a plan for one test.
class Armed {
 public:
  explicit Armed(std::string_view plan, int rank = 0, int attempt = 1) {
    arm_faults(parse_fault_plan(plan, kSomeFaultSites), rank, attempt);
  }
  ~Armed() { arm_faults({}, 0, 1); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
};

// Returns the wait status of a child process that calls work().
template <class Work>
int status_of_child(Work work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    work();
    ::_exit(99);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  if (WIFSTOPPED(status)) {
    ::kill(pid, SIGKILL);
    int end = 0;
    EXPECT_EQ(::waitpid(pid, &end, 0), pid);
  }
  return status;
}

int status_after(const std::string& action) {
  return status_of_child([&] {
    const Armed armed("step.end:0:2:" + action);
    fault("step.end");
    fault("step.end");
  });
}

TEST(Fault, IsOffWithoutAPlan) {
  EXPECT_FALSE(faults_armed());
  fault("step.end");
  EXPECT_EQ(fault_call("file.write", 7).bytes, 7);
}

TEST(Fault, EndsTheProcess) {
  EXPECT_EQ(WTERMSIG(status_after("kill")), SIGKILL);
  EXPECT_EQ(WTERMSIG(status_after("abort")), SIGABRT);
  const int exited = status_after("exit=7");
  EXPECT_TRUE(WIFEXITED(exited));
  EXPECT_EQ(WEXITSTATUS(exited), 7);
  const int stopped = status_after("stop");
  EXPECT_TRUE(WIFSTOPPED(stopped));
  EXPECT_EQ(WSTOPSIG(stopped), SIGSTOP);
  // A sanitizer turns the signal into an exit.
  const int faulted = status_after("segv");
  EXPECT_TRUE(WIFSIGNALED(faulted) ? WTERMSIG(faulted) == SIGSEGV : WEXITSTATUS(faulted) != 99);
}

TEST(Fault, SpinsUntilKilled) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const Armed armed("step.end:0:1:spin");
    fault("step.end");
    ::_exit(99);
  }
  clockid_t clock = 0;
  ASSERT_EQ(::clock_getcpuclockid(pid, &clock), 0);
  timespec computed{};
  while (computed.tv_sec == 0 && computed.tv_nsec < 20'000'000) {  // it spins instead of sleeping
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(::clock_gettime(clock, &computed), 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, WNOHANG), 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
}

TEST(Fault, CountsPassages) {
  const Armed armed("step.end:0:2:throw,data.read:0:3+:throw");
  EXPECT_NO_THROW(fault("step.end"));
  EXPECT_NO_THROW(fault("data.read"));
  EXPECT_THROW(fault("step.end"), std::runtime_error);
  EXPECT_NO_THROW(fault("step.end"));
  EXPECT_NO_THROW(fault("data.read"));
  EXPECT_THROW(fault("data.read"), std::runtime_error);
  EXPECT_THROW(fault("data.read"), std::runtime_error);
  EXPECT_NO_THROW(fault("step.forward"));
}

TEST(Fault, MeansOneRankAndAttempt) {
  const std::string plan = "step.end@2:1:*:throw";
  for (const auto& [rank, attempt] : {std::pair{0, 2}, {1, 1}, {2, 2}}) {
    const Armed armed(plan, rank, attempt);
    EXPECT_FALSE(faults_armed());
    EXPECT_NO_THROW(fault("step.end"));
  }
  const Armed armed(plan, 1, 2);
  EXPECT_THROW(fault("step.end"), std::runtime_error);
}

TEST(Fault, CallsTheFunctionOfATest) {
  std::vector<std::string> passed;
  {
    const AtFaults watching([&](std::string_view point) { passed.emplace_back(point); });
    fault("step.end");
    EXPECT_EQ(fault_call("file.write", 7).bytes, 7);
  }
  fault("step.end");
  EXPECT_THAT(passed, ::testing::ElementsAre("step.end", "file.write"));
}

TEST(Fault, PausedPassagesHaveNoEffectAndDoNotCount) {
  const Armed armed("step.end:0:2:throw,file.write:0:*:errno=ENOSPC");
  fault("step.end");
  {
    const FaultsPaused paused;
    EXPECT_NO_THROW(fault("step.end"));
    EXPECT_EQ(fault_call("file.write", 7).error, 0);
    { const FaultsPaused again; }
    EXPECT_NO_THROW(fault("step.end")) << "the outer pause goes on";
  }
  EXPECT_EQ(fault_call("file.write", 7).error, ENOSPC);
  EXPECT_THROW(fault("step.end"), std::runtime_error) << "the second passage that counts";
}

TEST(Fault, APauseIsThatOfItsThread) {
  const Armed armed("step.end:0:*:throw");
  const FaultsPaused paused;
  std::thread([] { EXPECT_THROW(fault("step.end"), std::runtime_error); }).join();
  EXPECT_NO_THROW(fault("step.end"));
}

TEST(Fault, NoTestSeesPausedPassages) {
  int passed = 0;
  const AtFaults watching([&](std::string_view) { ++passed; });
  {
    const FaultsPaused paused;
    fault("step.end");
  }
  EXPECT_EQ(passed, 0);
  fault("step.end");
  EXPECT_EQ(passed, 1);
}

TEST(Fault, ThrowsTheErrorOfAnErrno) {
  const Armed armed("ckpt.shard_open:0:1:errno=ENOSPC,ckpt.rename:0:1:errno=EACCES");
  EXPECT_THAT(message_of<IoError>([] { fault("ckpt.shard_open"); }),
              AllOf(HasSubstr("ckpt.shard_open"), HasSubstr("full")));
  EXPECT_THROW(fault("ckpt.rename"), PolicyError);
}

TEST(Fault, CorruptsOneBit) {
  const Armed armed("load.shard:0:2:corrupt");
  std::array<unsigned char, 16> data{};
  fault("load.shard", data.data(), 16);
  EXPECT_EQ(data, (std::array<unsigned char, 16>{}));
  fault("load.shard", data.data(), 16);
  int bits = 0;
  for (const unsigned char byte : data) {
    bits += __builtin_popcount(byte);
  }
  EXPECT_EQ(bits, 1);
}

TEST(Fault, ChangesNumbers) {
  const Armed armed("step.gradient:0:1:scale=-1000,step.gradient:0:2:nan");
  std::array<float, 4> values = {1, 2, 3, 4};
  fault("step.gradient", values.data(), sizeof values);
  EXPECT_EQ(values, (std::array<float, 4>{-1000, -2000, -3000, -4000}));
  fault("step.gradient", values.data(), sizeof values);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(values[1], -2000);
  fault("step.gradient", nullptr, 0);
}

TEST(Fault, ShortAndInterruptedCallsAreInvisible) {
  const TempFolder folder;
  const std::string text(20'000, 'x');
  const auto bytes = static_cast<std::int64_t>(text.size());
  const Armed armed(
      "file.write:0:*:short,file.open:0:1:errno=EINTR,file.sync:0:1:errno=EINTR,"
      "file.read:0:*:short,file.read:0:2:errno=EINTR,file.close:0:1:errno=EINTR");
  File file = File::create_new(folder.path() / "a");
  file.write(text.data(), bytes);
  file.write_at(bytes, text.data(), bytes);
  file.sync();
  file.close();
  EXPECT_EQ(read_file(folder.path() / "a"), text + text);
}

TEST(Fault, FailingCallsAreErrors) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  for (const char* call : {"file.open", "file.write", "file.sync", "file.close", "file.rename"}) {
    const Armed armed(std::string(call) + ":0:1:errno=EDQUOT");
    EXPECT_THAT(message_of<IoError>([&] { write_file_durably(path, "text"); }), HasSubstr("quota"));
    EXPECT_TRUE(fs::is_empty(folder.path())) << call;
  }
  write_file_durably(path, "text");
  const Armed armed("file.read:0:1:errno=EIO");
  EXPECT_THROW(read_file(path), IoError);
}

}  // namespace
}  // namespace trireme
