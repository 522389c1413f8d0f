#include "src/compute/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Programs with CUDA devices are tested in tests/e2e/simulated_gpu_test.py.
TEST(DeviceChoice, IsTheCpuWithoutCuda) {
  EXPECT_EQ(choose_device("cpu"), Device::cpu());
  EXPECT_EQ(choose_device("auto", 3, 4), Device::cpu());
  EXPECT_EQ(device_text(Device::cpu()), "cpu");
  try {
    (void)choose_device("cuda");
    ADD_FAILURE() << "there is no device";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("built without CUDA"));
  }
}

TEST(DeviceChoice, FollowsTheNumberOnTheHostWithoutNuma) {
  const std::vector<RankNearness> ranks(3);
  EXPECT_THAT(assign_devices(ranks, std::vector<DeviceNearness>(4)), testing::ElementsAre(0, 1, 2));
}

// There are two sockets with two devices each. Neighbouring ranks are on different sockets.
TEST(DeviceChoice, TakesADeviceNextToTheRanksCores) {
  const std::vector<DeviceNearness> devices = {{0}, {0}, {1}, {1}};
  EXPECT_THAT(assign_devices({{{1}}, {{0}}, {{1}}, {{0}}}, devices),
              testing::ElementsAre(2, 0, 3, 1));
  // A rank that may run anywhere takes a device that the bound ranks leave.
  EXPECT_THAT(assign_devices({{{0, 1}}, {{0}}, {{0}}}, devices), testing::ElementsAre(2, 0, 1));
  // If a socket has more ranks than devices, the rest take devices of the other socket.
  EXPECT_THAT(assign_devices({{{1}}, {{1}}, {{1}}}, devices), testing::ElementsAre(2, 3, 0));
}

TEST(DeviceChoice, SharesDevicesEvenly) {
  EXPECT_THAT(assign_devices(std::vector<RankNearness>(5), {{0}, {1}}),
              testing::ElementsAre(0, 1, 0, 1, 0));
}

}  // namespace
}  // namespace trireme
