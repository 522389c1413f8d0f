// Tests how NCCL's stand-in aborts communicators.
#include <barrier>
#include <chrono>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/device/sim/fault.h"
#include "tests/device/sim/nccl_ranks.h"

namespace trireme {
namespace {

TEST(SimNccl, ARankThatDoesNotComeHangsTheOthersUntilTheyAbort) {
  sim::set_faults("1:0:hang");
  ncclUniqueId id;
  expect_ok(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const Rank own = join(id, 2, rank);
      DeviceArray<float> data(std::vector<float>{1});
      expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, own.communicator,
                              own.stream));
      cudaStream_t other = nullptr;
      expect_success(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
      expect_success(cudaMemsetAsync(data.data(), 0, 4, other));
      expect_success(cudaStreamSynchronize(other));  // goes on beside it
      EXPECT_FALSE(is_idle(own.stream));
      EXPECT_EQ(ncclCommDestroy(own.communicator), ncclInvalidUsage);
      expect_ok(ncclCommAbort(own.communicator));
      expect_success(cudaStreamSynchronize(own.stream));
      expect_success(cudaStreamDestroy(other));
      expect_success(cudaStreamDestroy(own.stream));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  sim::set_faults("");
}

// NCCL frees memory when it aborts, and CUDA waits for the device before that: operations of other
// communicators must have been aborted, too.
TEST(SimNccl, AnAbortWaitsForTheOperationsOfOtherCommunicators) {
  for (const bool together : {false, true}) {
    ncclUniqueId ids[2];
    expect_ok(ncclGetUniqueId(&ids[0]));
    expect_ok(ncclGetUniqueId(&ids[1]));
    std::barrier meeting(2);
    std::latch has_aborted(1);  // rank 1, which has nothing to wait for
    const auto rank = [&](int number) {
      const Rank idle = join(ids[0], 2, number);
      const Rank busy = join(ids[1], 2, number);
      DeviceArray<float> data(std::vector<float>{1});
      if (number == 0) {  // rank 1 does not come
        expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum,
                                busy.communicator, busy.stream));
      }
      if (together) {
        expect_ok(ncclGroupStart());
        expect_ok(ncclCommAbort(idle.communicator));
        expect_ok(ncclCommAbort(busy.communicator));
        expect_ok(ncclGroupEnd());
      } else {
        auto first = std::async(std::launch::async, [&] {
          expect_success(cudaSetDevice(number));
          return ncclCommAbort(idle.communicator);
        });
        if (number == 0) {
          has_aborted.wait();
          EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
        } else {
          first.wait();
          has_aborted.count_down();
        }
        expect_ok(ncclCommAbort(busy.communicator));
        expect_ok(first.get());
      }
      expect_success(cudaStreamSynchronize(busy.stream));
      meeting.arrive_and_wait();
      expect_success(cudaStreamDestroy(idle.stream));
      expect_success(cudaStreamDestroy(busy.stream));
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
  }
}

// NCCL waits for the thread that connects a communicator before it aborts it.
TEST(SimNccl, AnAbortDuringTheConnectionWaitsForOtherOperations) {
  ncclUniqueId ids[2];
  expect_ok(ncclGetUniqueId(&ids[0]));
  expect_ok(ncclGetUniqueId(&ids[1]));
  std::latch both(2);
  const auto rank = [&](int number) {
    const Rank busy = join(ids[0], 2, number);
    DeviceArray<float> data(std::vector<float>{1});
    ncclComm_t alone = nullptr;  // to a rank that does not come
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (number == 0) {
      expect_ok(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, busy.communicator,
                              busy.stream));
      EXPECT_EQ(ncclCommInitRankConfig(&alone, 2, ids[1], 0, &config), ncclInProgress);
      expect_ok(ncclGroupStart());
      expect_ok(ncclCommAbort(busy.communicator));  // first: the other order would wait for ever
      expect_ok(ncclCommAbort(alone));
      expect_ok(ncclGroupEnd());
    }
    both.arrive_and_wait();
    if (number == 1) {
      expect_ok(ncclCommAbort(busy.communicator));
    }
    expect_success(cudaStreamDestroy(busy.stream));
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
}

}  // namespace
}  // namespace trireme
