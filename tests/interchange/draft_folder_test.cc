// Tests what becomes of a draft whose process is ended by a signal.
#include "src/interchange/draft_folder.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

class KilledDraft : public testing::Test {
 protected:
  // Starts a process that makes a draft and then waits. Returns when the draft exists.
  pid_t process_with_draft() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        (void)std::signal(number, SIG_DFL);  // a shell lets what it starts beside it ignore some
      }
      SelfCommunicator self;
      const DraftFolder draft(self, out());
      write_whole_file(draft.path() / "part", "1");
      write_whole_file(folder_.path() / "ready", "");
      while (true) {
        ::pause();
      }
    }
    while (!fs::exists(folder_.path() / "ready")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    fs::remove(folder_.path() / "ready");
    return pid;
  }
  // Returns the signal that ended the process.
  static int end_of(pid_t pid, int signal) {
    ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  fs::path out() const { return folder_.path() / "out"; }
  fs::path draft_of(const std::string& host, pid_t pid) const {
    return folder_.path() / fmt::format(".out.draft-{}-{}", host, pid);
  }
  // Makes another draft of the same output, which goes away again.
  void start_again() { const DraftFolder draft(self_, out()); }

  TempFolder folder_;
  SelfCommunicator self_;
};

TEST_F(KilledDraft, IsRemovedBeforeASignalEndsTheProcess) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const pid_t pid = process_with_draft();
    EXPECT_TRUE(fs::exists(draft_of(host_name(), pid) / "part"));
    EXPECT_EQ(end_of(pid, signal), signal);
    EXPECT_TRUE(fs::is_empty(folder_.path())) << signal;
  }
}

// Without memory for a stack, no thread can be started.
TEST_F(KilledDraft, IsRemovedIfNoThreadCanWatchForSignals) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pthread_attr_t large;  // so that no stack of a thread that has ended fits
    ::pthread_attr_init(&large);
    ::pthread_attr_setstacksize(&large, std::size_t{64} << 20);
    ::pthread_setattr_default_np(&large);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{2} << 20);
    const ::rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      start_again();
    } catch (const ResourceError&) {
      ::_exit(static_cast<int>(ExitCode::device));
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::device));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(KilledDraft, IsRemovedByTheNextOneOfTheSameOutput) {
  const pid_t pid = process_with_draft();
  const fs::path draft = draft_of(host_name(), pid);
  start_again();
  EXPECT_TRUE(fs::exists(draft / "part")) << "its process is alive";
  EXPECT_EQ(end_of(pid, SIGKILL), SIGKILL);
  EXPECT_TRUE(fs::exists(draft / "part"));
  { const DraftFolder other(self_, folder_.path() / "ou"); }
  EXPECT_TRUE(fs::exists(draft / "part")) << "that was another output";
  start_again();
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(KilledDraft, StaysIfItsProcessMayBeAlive) {
  const pid_t dead = process_with_draft();
  end_of(dead, SIGTERM);
  fs::create_directory(draft_of("another-host", dead));
  fs::create_directory(draft_of(host_name(), dead));
  // So a process of another container looks, which has the lock but is not seen.
  const int lock = ::open(draft_of(host_name(), dead).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  start_again();
  EXPECT_TRUE(fs::exists(draft_of("another-host", dead)));
  EXPECT_TRUE(fs::exists(draft_of(host_name(), dead)));
  ::close(lock);
  start_again();
  EXPECT_TRUE(fs::exists(draft_of("another-host", dead)));
  EXPECT_FALSE(fs::exists(draft_of(host_name(), dead)));
}

TEST_F(KilledDraft, IsNotTakenFromAProcessOfTheSameNumber) {
  const fs::path draft = draft_of(host_name(), ::getpid());
  fs::create_directory(draft);
  const int lock = ::open(draft.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  EXPECT_THROW(start_again(), PolicyError);
  EXPECT_TRUE(fs::exists(draft));
  ::close(lock);
  start_again();
  EXPECT_FALSE(fs::exists(draft));
}

TEST_F(KilledDraft, ReplacesNoFolderThatWasMadeMeanwhile) {
  {
    DraftFolder draft(self_, out());
    write_whole_file(draft.path() / "part", "1");
    fs::create_directory(out());
    EXPECT_THROW(draft.keep(), PolicyError);
  }
  EXPECT_TRUE(fs::is_empty(out()));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "the draft is gone";
}

}  // namespace
}  // namespace trireme
