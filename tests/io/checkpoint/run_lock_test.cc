#include "io/checkpoint/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/at_faults.h"
#include "tests/support/message_of.h"
#include "tests/support/thread_sleeps.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

// Returns the pid of a process that has ended.
pid_t dead_process() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  return pid;
}

class Lock : public testing::Test {
 protected:
  void stand(const std::string& text, std::chrono::seconds age = 0s) {
    fs::remove(path_);
    File file = File::create_new(path_);
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.close();
    const timespec then{::time(nullptr) - age.count(), 0};
    const std::array<timespec, 2> times = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times.data(), 0), 0);
  }
  void stand(const LockOwner& owner, std::chrono::seconds age = 0s) { stand(to_text(owner), age); }

  void expect_refused(const std::string& named, bool force = false) {
    const std::string before = read_file(path_);
    try {
      RunLock lock(folder_.path(), force);
      FAIL() << "a second run was let in";
    } catch (const PolicyError& e) {
      EXPECT_EQ(e.exit_code(), ExitCode::refused);
      EXPECT_THAT(e.what(), AllOf(HasSubstr(named), HasSubstr(path_.string())));
    }
    EXPECT_EQ(read_file(path_), before);
    for (const std::string& name : names_in(folder_.path())) {
      EXPECT_FALSE(name.starts_with("run.lock.")) << name;
    }
  }
  void expect_taken(bool force = false) {
    {
      const RunLock lock(folder_.path(), force);
      EXPECT_NO_THROW(lock.check_still_mine());
      EXPECT_EQ(parse_lock(read_file(path_))->pid, ::getpid());
    }
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"GENERATION"});
  }

  TempFolder folder_;
  fs::path path_ = folder_.path() / kLockName;
  LockOwner owner_ = LockOwner::this_process();
};

TEST_F(Lock, IsGivenBack) { expect_taken(); }

// Such a lock could not be read back, and the run would lose it at its first save.
TEST_F(Lock, RefusesVariablesThatMakeItUnreadable) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"SLURM_RESTART_COUNT", "-1"},
      {"SLURM_RESTART_COUNT", "1152921504606846977"},  // 2^60 + 1
      {"SLURM_RESTART_COUNT", "99999999999999999999"},
      {"SLURM_RESTART_COUNT", "1x"},
      {"TRIREME_GENERATION", "-1"},
      {"TRIREME_LAUNCH_ID", "a\xff"},
      {"TRIREME_LAUNCH_ID", "a\n"},
      {"SLURM_JOB_ID", "\xed\xa0\x80"}};
  for (const auto& [variable, value] : cases) {
    ::setenv(variable, value, 1);
    EXPECT_THAT(message_of<ConfigError>([] { LockOwner::this_process(); }),
                testing::StartsWith(std::string(variable) + " is '"))
        << value;
    ::unsetenv(variable);
  }
  ::setenv("SLURM_RESTART_COUNT", "3", 1);
  const std::optional<LockOwner> read = parse_lock(to_text(LockOwner::this_process()));
  ::unsetenv("SLURM_RESTART_COUNT");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->restart_count, 3);
}

TEST_F(Lock, ALivingOwnerIsRespectedHoweverOldTheFile) {
  stand(owner_, 48h);
  expect_refused("process " + std::to_string(::getpid()));
}

TEST_F(Lock, ForceBeatsAnOwnerElsewhereButNoneThatLivesHere) {
  stand(owner_);
  expect_refused("alive", true);
  owner_.host = "n3";
  stand(owner_);
  expect_taken(true);
}

TEST_F(Lock, AnEndedProcessIsNot) {
  owner_.pid = dead_process();
  stand(owner_);
  expect_taken();
}

TEST_F(Lock, NorAnotherProcessOfTheSameNumber) {
  owner_.start_time += 1;
  stand(owner_);
  expect_taken();
}

TEST_F(Lock, NorOneFromBeforeTheLastBoot) {
  owner_.boot_id = "another";
  stand(owner_);
  expect_taken();
}

TEST_F(Lock, AnotherHostIsRespectedAsLongAsItsLeaseRuns) {
  owner_.host = "n3";
  owner_.job_id = "99";
  stand(owner_, 60s);
  expect_refused("host n3, process " + std::to_string(owner_.pid) + ", Slurm job 99");
  stand(owner_, 180s);
  expect_taken();
}

TEST_F(Lock, AnEarlierStartOfTheSameJobIsOver) {
  ::setenv("SLURM_JOB_ID", "77", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  owner_.host = "n3";
  owner_.job_id = "77";
  owner_.restart_count = 2;
  stand(owner_);
  expect_refused("Slurm job 77");
  owner_.restart_count = 1;
  stand(owner_);
  expect_taken();
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST_F(Lock, ADamagedLockIsRespectedAsLongAsItIsFresh) {
  std::string text = to_text(owner_);
  for (const std::size_t at : {std::size_t{0}, text.size() / 2, text.size() - 2}) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(parse_lock(bad).has_value()) << at;
    stand(bad);
    expect_refused("damaged or not a regular file");
  }
  stand(std::string());
  expect_refused("damaged or not a regular file");
  stand(std::string(65 << 10, 'x'));  // more than is read of a lock
  expect_refused("damaged or not a regular file");
  stand(text.substr(0, 20), 180s);
  expect_taken();
}

TEST_F(Lock, ALinkThatLeadsNowhereIsADamagedLock) {
  fs::create_symlink("nowhere", path_);
  try {
    const RunLock lock(folder_.path(), false);
    FAIL() << "the link was taken for no lock";
  } catch (const PolicyError& error) {
    EXPECT_THAT(error.what(), HasSubstr("damaged or not a regular file"));
  }
  expect_taken(true);
}

TEST_F(Lock, IsRefreshed) {
  const RunLock lock(folder_.path(), false, {1ms, 120s});
  const std::array<timespec, 2> times = {timespec{1000, 0}, timespec{1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times.data(), 0), 0);
  struct stat status {};
  do {
    std::this_thread::sleep_for(1ms);
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  } while (status.st_mtim.tv_sec == 1000);
}

TEST_F(Lock, LosingItIsNoticed) {
  {
    const RunLock lock(folder_.path(), false, {1ms, 120s});
    owner_.nonce = "other";
    fs::remove(path_);
    EXPECT_THROW(lock.check_still_mine(), PolicyError);
    stand(owner_);
    EXPECT_THROW(lock.check_still_mine(), PolicyError);
    while (!lock.lost()) {
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_EQ(read_file(path_), to_text(owner_)) << "another run's lock was removed";
}

// Simulates a file server that does not respond for a moment.
TEST_F(Lock, WhatCantBeReadNowIsNotLost) {
  const RunLock lock(folder_.path(), false, {1ms, 120s});
  fs::permissions(path_, fs::perms::none);
  {
    const Unprivileged nobody;
    if (!nobody.bound()) {
      GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
    }
    EXPECT_THROW(lock.check_still_mine(), IoError);
    wait_for_sleeps(3);  // the thread that refreshes the lock has looked
    EXPECT_FALSE(lock.lost());
  }
  fs::permissions(path_, fs::perms::owner_all);
  EXPECT_NO_THROW(lock.check_still_mine());
}

TEST_F(Lock, WhatWasGivenBackCommitsNothing) {
  RunLock lock(folder_.path(), false);
  EXPECT_TRUE(lock.give_back(10s));
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_THROW(lock.check_still_mine(), PolicyError);
  const RunLock next(folder_.path(), false);
  EXPECT_THROW(lock.check_still_mine(), PolicyError);
}

TEST_F(Lock, GenerationsGrow) {
  for (const std::int64_t expected : {1, 2, 3}) {
    EXPECT_EQ(RunLock(folder_.path(), false).generation(), expected);
  }
  make_directories(folder_.path() / ".tmp-100-8");
  EXPECT_EQ(RunLock(folder_.path(), false).generation(), 9);
  fs::remove_all(folder_.path() / ".tmp-100-8");
  ASSERT_TRUE(save_state(folder_.path(), small_state(), 1).durable);  // by generation 10
  write_file_durably(folder_.path() / kGenerationName, "1\n");
  EXPECT_EQ(RunLock(folder_.path(), false).generation(), 11);
  write_file_durably(folder_.path() / kGenerationName, "x\n");
  EXPECT_EQ(RunLock(folder_.path(), false).generation(), 11);
}

TEST(TwoRuns, TheSecondIsRefusedOnAllItsRanks) {
  TempFolder folder;
  ThreadWorld(1).run([&](Communicator& first) {
    const DiskTarget writer(first, options_for(folder.path()));
    std::atomic<int> refused = 0;
    ThreadWorld(3).run([&](Communicator& second) {
      try {
        const DiskTarget other(second, options_for(folder.path()));
      } catch (const PolicyError& e) {
        EXPECT_THAT(e.what(), HasSubstr("another run writes to"));
        ++refused;
      }
    });
    EXPECT_EQ(refused, 3);
  });
}

TEST(TwoRuns, WhoLostTheLockCommitsNothing) {
  TempFolder folder;
  const State state = small_state();
  ASSERT_TRUE(save_state(folder.path(), state, 1).durable);
  std::atomic<bool> is_lost = false;
  const AtFaults losing([&](std::string_view point) {
    if (point == "ckpt.fence" && !is_lost.exchange(true)) {
      fs::remove(folder.path() / kLockName);
      const SaveOutcome newer = save_state(folder.path(), state, 2);  // by another run
      EXPECT_TRUE(newer.durable) << newer.message;
    }
  });
  ThreadWorld(2).run([&](Communicator& comm) {
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    const Blocks blocks = cut_state(small_state(9), cut_flat, comm.rank(), 2);
    writer.save(meta_of(2), blocks.list);
    const auto outcome = writer.finish();
    EXPECT_FALSE(outcome->durable);
    EXPECT_THAT(outcome->message, HasSubstr("no longer holds"));
    EXPECT_EQ(writer.stats().failed, 1);
  });
  EXPECT_TRUE(load_state(folder.path(), state).equal);
  EXPECT_EQ(load_state(folder.path(), state).resumed->manifest.meta.step, 2);
}

}  // namespace
}  // namespace trireme
