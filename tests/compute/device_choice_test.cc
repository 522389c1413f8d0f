#include "src/compute/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Programs with CUDA devices are tested in tests/e2e/simulated_gpu_test.py.
TEST(DeviceChoice, IsTheCpuWithoutCuda) {
  EXPECT_EQ(choose_device("cpu"), Device{});
  EXPECT_EQ(choose_device("auto", 3, 4), Device{});
  EXPECT_EQ(device_text(Device{}), "cpu");
  try {
    (void)choose_device("cuda");
    ADD_FAILURE() << "there is no device";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("built without CUDA"));
  }
}

}  // namespace
}  // namespace trireme
