#include "slurm/process/silence.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

using std::chrono::milliseconds;

TEST(Silence, CountsWhileThisProcessListens) {
  const Silence::Clock::time_point start{};
  Silence silence(start);
  for (int i = 1; i <= 30; ++i) {
    EXPECT_DOUBLE_EQ(silence.seconds(start + i * milliseconds(500)), 0.5 * i);
  }
  silence.heard(start + milliseconds(15500));
  EXPECT_DOUBLE_EQ(silence.seconds(start + milliseconds(16000)), 0.5);
}

TEST(Silence, LeavesOutWhatThisProcessSlept) {
  const Silence::Clock::time_point start{};
  Silence silence(start);
  EXPECT_DOUBLE_EQ(silence.seconds(start + milliseconds(1000)), 1);
  EXPECT_DOUBLE_EQ(silence.seconds(start + milliseconds(61000)), 1);
  EXPECT_DOUBLE_EQ(silence.seconds(start + milliseconds(62000)), 2);
}

}  // namespace
}  // namespace trireme
