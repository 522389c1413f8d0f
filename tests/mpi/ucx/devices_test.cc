#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/ucx/ucx_devices.h"

namespace trireme {
namespace {

const std::vector<UcxDevice> kDevices = {
    {"tcp", "eth0", true}, {"tcp", "lo", true}, {"rc_mlx5", "mlx5_0:1", true}, {"posix", "memory"}};

TEST(UcxDevices, AbsentOnesAreFound) {
  for (const char* setting :
       {"all", "eth0", "nothing,lo", "mlx5_0:1", "mlx5_*", "^eth0", "", ","}) {
    EXPECT_FALSE(names_absent_devices(setting, kDevices)) << setting;
  }
  // Shared memory is no network device.
  for (const char* setting : {"mlx5_1:1", "eth1,ib0", "memory", "mlx5_0"}) {
    EXPECT_TRUE(names_absent_devices(setting, kDevices)) << setting;
  }
}

TEST(UcxDevices, AreDescribedByTransport) {
  EXPECT_EQ(describe(kDevices), "tcp on eth0 lo; rc_mlx5 on mlx5_0:1; posix on memory");
  EXPECT_EQ(describe({}), "");
}

TEST(UcxDevices, ThisHostHasTcp) {
  EXPECT_THAT(describe(ucx_devices()), testing::HasSubstr("tcp on "));
}

}  // namespace
}  // namespace trireme
