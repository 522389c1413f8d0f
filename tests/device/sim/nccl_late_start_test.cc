// Tests NCCL's communicators that do not block: a call returns before its operation is on the
// stream.
#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

TEST(SimNccl, ACommunicatorThatDoesNotBlockStartsOperationsLater) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  cudaStream_t stream = nullptr;
  expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t alone = nullptr;
  ncclResult_t state = ncclCommInitRankConfig(&alone, 1, id, 0, &config);
  while (state == ncclInProgress) {
    ASSERT_EQ(ncclCommGetAsyncError(alone, &state), ncclSuccess);
  }
  DeviceArray<float> from(std::vector<float>{3});
  DeviceArray<float> to(std::vector<float>{1});
  const auto copy = [&] {
    return ncclAllReduce(from.data(), to.data(), 1, ncclFloat32, ncclSum, alone, stream);
  };
  EXPECT_EQ(copy(), ncclInProgress);
  EXPECT_EQ(copy(), ncclInvalidUsage);  // the first is not on the stream yet
  expect_success(cudaStreamSynchronize(stream));
  EXPECT_EQ(to.read()[0], 1);
  EXPECT_EQ(ncclCommGetAsyncError(alone, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  expect_success(cudaStreamSynchronize(stream));
  EXPECT_EQ(to.read()[0], 3);
  EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
  expect_success(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace trireme
