#include "io/h5/hang_guard.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include "io/h5/h5_file.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kShort{100};

void compute_for_ever() {
  volatile bool done = false;
  while (!done) {
  }
}

class HangGuardTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer holds signals back while a thread computes";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(HangGuardTest, AnEndlessLoopOfTheLibraryIsBadData) {
  // The global heap of this file has an object of no length (tests/fuzz/make_hdf5_corpus.py).
  const fs::path path = fs::path(TRIREME_SOURCE_DIR) / "tests/fuzz/corpus/hdf5_fuzz/heap-loop";
  EXPECT_EXIT((void)H5File::open_to_read(path, kShort).integers("/tokens"),
              testing::ExitedWithCode(65),
              "heap-loop: the HDF5 library computed for 100 ms without finishing one operation on "
              "this file, which is probably damaged; replace it, or leave it out");
}

TEST_F(HangGuardTest, EndsTheLoopOfAnyThreadAlsoWhereSignalsAreBlocked) {
  EXPECT_EXIT(std::thread([] {
                sigset_t all;
                ::sigfillset(&all);
                ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
                const HangGuard guard("a.h5", kShort);
                compute_for_ever();
              }).join(),
              testing::ExitedWithCode(65), "a.h5: the HDF5 library computed for 100 ms");
}

TEST_F(HangGuardTest, WaitingAndOtherThreadsDoNotCount) {
  const HangGuard guard("a.h5", kShort);
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
    }
  });
  clockid_t clock = 0;
  ASSERT_EQ(::pthread_getcpuclockid(other.native_handle(), &clock), 0);
  timespec computed{};
  while (computed.tv_sec == 0 && computed.tv_nsec < 2 * nanoseconds(kShort).count()) {
    std::this_thread::sleep_for(milliseconds(1));
    ::clock_gettime(clock, &computed);
  }
  done = true;
  other.join();
}

TEST_F(HangGuardTest, LeavesNothingBehind) {
  struct sigaction before {};
  ::sigaction(SIGVTALRM, nullptr, &before);
  for (int i = 0; i < 100'000; ++i) {  // more than timers a process may have
    const HangGuard guard("a.h5", kShort);
  }
  struct sigaction after {};
  ::sigaction(SIGVTALRM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace trireme
