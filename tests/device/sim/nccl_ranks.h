// Ranks of the NCCL stand-in for its tests.
#pragma once

#include <chrono>
#include <cstdlib>
#include <thread>

#include <nccl.h>

#include "tests/device/sim/device_array.h"

namespace trireme {

inline void expect_ok(ncclResult_t result) { EXPECT_EQ(result, ncclSuccess); }

// Ranks on threads have a device each.
[[maybe_unused]] inline const int devices_are_set = ::setenv("TRIREME_SIM_DEVICES", "4", 0);

struct Rank {
  int rank = 0;
  int ranks = 1;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

inline Rank join(const ncclUniqueId& id, int ranks, int rank) {
  Rank own;
  expect_success(cudaSetDevice(rank));
  own.rank = rank;
  own.ranks = ranks;
  expect_success(cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;  // calls return when the operation is on the stream
  ncclResult_t state = ncclCommInitRankConfig(&own.communicator, ranks, id, rank, &config);
  while (state == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    expect_ok(ncclCommGetAsyncError(own.communicator, &state));
  }
  expect_ok(state);
  return own;
}

inline void leave(const Rank& own) {
  expect_success(cudaStreamSynchronize(own.stream));
  expect_ok(ncclCommDestroy(own.communicator));
  expect_success(cudaStreamDestroy(own.stream));
}

inline bool is_idle(cudaStream_t stream) { return cudaStreamQuery(stream) == cudaSuccess; }

}  // namespace trireme
