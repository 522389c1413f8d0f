#include "slurm/launch/run_files.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/lock_mark.h"
#include "src/base/log.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thread_sleeps.h"

namespace trireme {
namespace {

void become(const char* job, const char* restart) {
  ::setenv("SLURM_JOB_ID", job, 1);
  ::setenv("SLURM_RESTART_COUNT", restart, 1);
}

// The ranks of a killed launch may need a moment to end.
TEST(RunFiles, RanksOfAnotherStartAreWaitedForThenRefused) {
  const TempFolder folder;
  UniqueHandle<FileDescriptorTraits> ranks(
      ::open((folder.path() / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(ranks.get(), LOCK_EX | LOCK_NB), 0);
  const std::string mark = own_lock_mark();
  ASSERT_EQ(::write(ranks.get(), mark.data(), mark.size()), std::ssize(mark));
  EXPECT_THAT(
      message_of<PolicyError>(
          [&] { RunFiles(folder.path(), folder.path() / "checkpoints").take(); }),
      testing::HasSubstr(fmt::format(": host {}, process {} (since ", host_name(), ::getpid())));
  std::thread later([&] {
    wait_for_sleeps(1);  // take() has found the lock and waits
    ranks.reset();
  });
  EXPECT_NO_THROW(RunFiles(folder.path(), folder.path() / "checkpoints").take());
  later.join();
}

// The lock is never released, as if a file server kept it for a dead host.
TEST(RunFiles, ALaterStartOfTheSameJobTakesTheLock) {
  TempFolder run;
  become("7", "0");
  RunFiles first(run.path(), run.path());
  first.take();
  RunFiles same(run.path(), run.path());
  EXPECT_THROW(same.take(), PolicyError);
  become("8", "1");
  RunFiles other(run.path(), run.path());
  EXPECT_THROW(other.take(), PolicyError);
  become("", "");
  EXPECT_THROW(other.take(), PolicyError);
  become("7", "1");
  RunFiles later(run.path(), run.path());
  later.take();
  become("7", "2");
  RunFiles latest(run.path(), run.path());
  latest.take();
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

// Read as 0, such a count would make every start of the job the first one.
TEST(RunFiles, ACountOfStartsThatIsNoNumberIsRefused) {
  TempFolder run;
  become("7", "1x");
  EXPECT_THAT(message_of<ConfigError>([&] { RunFiles(run.path(), run.path()).take(); }),
              testing::HasSubstr("SLURM_RESTART_COUNT='1x'"));
  become("7", "1");
  RunFiles first(run.path(), run.path());
  first.take();
  write_file_durably(run.path() / ".launch.lock", "7 0x\n");  // of no start of this job
  become("7", "2");
  UniqueHandle<FileDescriptorTraits> held(
      ::open((run.path() / ".launch.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THROW(RunFiles(run.path(), run.path()).take(), PolicyError);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST(RunFiles, ALockThatWasGivenBackIsTaken) {
  TempFolder run;
  { RunFiles(run.path(), run.path()).take(); }
  RunFiles next(run.path(), run.path());
  next.take();
  RunFiles another(run.path(), run.path());
  try {
    another.take();
    ADD_FAILURE() << "two launches at once";
  } catch (const PolicyError& e) {
    EXPECT_NE(std::string(e.what()).find(".launch.lock"), std::string::npos);
    const std::string owner =
        fmt::format(": host {}, process {} (since 20", host_name(), ::getpid());
    EXPECT_NE(std::string(e.what()).find(owner), std::string::npos) << e.what();
  }
}

// Others who may write to the folder must not be able to choose the file that is truncated.
TEST(RunFiles, ALockThatIsALinkIsRefusedAndItsTargetKept) {
  TempFolder run;
  const auto target = run.path() / "precious";
  write_file_durably(target, "kept");
  std::filesystem::create_symlink(target, run.path() / ".launch.lock");
  become("7", "1");
  EXPECT_THROW(RunFiles(run.path(), run.path()).take(), PolicyError);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  EXPECT_EQ(read_file(target), "kept");
  std::filesystem::remove(run.path() / ".launch.lock");
  ASSERT_EQ(::mkfifo((run.path() / ".launch.lock").c_str(), 0600), 0);
  EXPECT_THROW(RunFiles(run.path(), run.path()).take(), PolicyError);
}

}  // namespace
}  // namespace trireme
