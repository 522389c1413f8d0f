#include "io/checkpoint/workers.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

namespace trireme {
namespace {

using testing::HasSubstr;

// While an object lives, no thread can be started, because a stack would exceed the address space,
// whatever the kernel promises (vm.overcommit_memory).
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    ::pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    ::pthread_setattr_default_np(&huge);
  }
  ~NoThreads() { ::pthread_setattr_default_np(&before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(BackgroundJob, NamesTheLimitsThatForbidAThread) {
  BackgroundJob job;
  {
    const NoThreads none;
    job.start([] { FAIL() << "no thread can be started"; });
  }
  ASSERT_EQ(job.state(), BackgroundJob::State::failed);
  EXPECT_THAT(job.error(), HasSubstr("no thread can be started"));
  EXPECT_THAT(job.error(), HasSubstr("ulimit -u"));
  EXPECT_THAT(job.error(), HasSubstr("ulimit -v"));
  job.start([] {});
  job.wait();
  EXPECT_EQ(job.state(), BackgroundJob::State::succeeded);
}

TEST(ParallelFor, DoesAllWorkWithTheThreadsThatStart) {
  const NoThreads none;
  std::atomic<std::int64_t> sum = 0;
  parallel_for(4, 100, [&](std::int64_t i) { sum += i; });
  EXPECT_EQ(sum, 4950);
}

}  // namespace
}  // namespace trireme
