#include "src/train/report/running_ceiling.h"

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"

namespace trireme {
namespace {

TEST(RunningCeiling, IsNeverBelowWhatWasReached) {
  ThreadWorld(2).run([](Communicator& world) {
    DeviceContext context(Device::cpu(), 1);
    RunningCeiling ceiling(context, DType::f32, world);
    const double first = ceiling.flops();
    EXPECT_GT(first, 0);
    EXPECT_GE(ceiling.at_least(0), first);
    EXPECT_EQ(ceiling.at_least(1e18), 1e18);
    EXPECT_EQ(ceiling.at_least(1), 1e18);
  });
}

}  // namespace
}  // namespace trireme
