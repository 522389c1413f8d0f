// Tests streams, events and host functions.
#include "src/device/sim/machine.h"

#include <atomic>
#include <latch>
#include <thread>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::launch;

constexpr std::uint64_t kSeeds = 12;

struct Streams {
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  Streams() {
    expect_success(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    expect_success(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    expect_success(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  ~Streams() {
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
};

__global__ void add(float* to, float value) { *to += value; }
__global__ void multiply(float* to, float factor) { *to *= factor; }

// Adds 1 on one stream and doubles on another; 0 + 1, doubled, is 2.
float add_then_double(std::uint64_t seed, bool waits) {
  const SeedScope scope(seed);
  const Streams streams;
  DeviceArray<float> value(std::vector<float>{0});
  for (int fill = 0; fill < 3; ++fill) {
    launch(kernel_of<multiply>, 1, 1, 0, streams.first, value.data(), 1.0F);
  }
  launch(kernel_of<add>, 1, 1, 0, streams.first, value.data(), 1.0F);
  expect_success(cudaEventRecord(streams.event, streams.first));
  if (waits) {
    expect_success(cudaStreamWaitEvent(streams.second, streams.event));
  }
  launch(kernel_of<multiply>, 1, 1, 0, streams.second, value.data(), 2.0F);
  return value.read()[0];
}

TEST(SimStreams, AMissingWaitGivesAWrongResultUnderSomeSeed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(add_then_double(seed, true), 2) << seed;
  }
  // The device works while the host queues: where other programs interrupt the host in between,
  // few seeds are left in which the second stream can overtake the first one.
  bool is_wrong = false;
  for (std::uint64_t seed = 0; seed < 100 * kSeeds && !is_wrong; ++seed) {
    is_wrong = add_then_double(seed, false) != 2;
  }
  EXPECT_TRUE(is_wrong);
}

TEST(SimStreams, AWaitCoversTheRecordsBeforeItOnly) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SeedScope scope(seed);
    const Streams streams;
    DeviceArray<float> value(std::vector<float>{1});
    EXPECT_EQ(cudaEventQuery(streams.event), cudaSuccess);  // never recorded
    for (int round = 0; round < 5; ++round) {
      launch(kernel_of<add>, 1, 1, 0, streams.first, value.data(), 1.0F);
      cudaEventRecord(streams.event, streams.first);
      cudaStreamWaitEvent(streams.second, streams.event);
      launch(kernel_of<multiply>, 1, 1, 0, streams.second, value.data(), 2.0F);
      cudaEventRecord(streams.event, streams.second);
      cudaStreamWaitEvent(streams.first, streams.event);
    }
    EXPECT_EQ(value.read()[0], 94);  // x -> 2 (x + 1), five times from 1
  }
}

TEST(SimStreams, SynchronizeReturnsAfterTheWork) {
  const Streams streams;
  struct Calls {
    std::latch queried{1};
    std::atomic<int> count = 0;
  } calls;
  const auto count = [](void* to) {
    static_cast<Calls*>(to)->queried.wait();
    ++static_cast<Calls*>(to)->count;
  };
  expect_success(cudaLaunchHostFunc(streams.first, count, &calls));
  EXPECT_EQ(cudaStreamQuery(streams.first), cudaErrorNotReady);
  calls.queried.count_down();
  expect_success(cudaStreamSynchronize(streams.first));
  EXPECT_EQ(calls.count, 1);
  EXPECT_EQ(cudaStreamQuery(streams.first), cudaSuccess);
  expect_success(cudaLaunchHostFunc(streams.second, count, &calls));
  expect_success(cudaEventRecord(streams.event, streams.second));
  expect_success(cudaEventSynchronize(streams.event));
  EXPECT_EQ(calls.count, 2);
}

TEST(SimStreams, EventsMeasureTime) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  expect_success(cudaEventCreateWithFlags(&start, cudaEventDefault));
  expect_success(cudaEventCreateWithFlags(&end, cudaEventDefault));
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  cudaEventRecord(start);
  cudaEventRecord(end);
  expect_success(cudaEventSynchronize(end));
  expect_success(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
}

TEST(SimStreams, RefusesStreamsThatWereDestroyed) {
  cudaStream_t stream = nullptr;
  expect_success(cudaStreamCreateWithFlags(&stream, 0));
  expect_success(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

TEST(SimStreams, SeveralThreadsOfTheHostMayUseStreams) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&right] {
      const Streams streams;
      DeviceArray<float> value(std::vector<float>{0});
      PinnedArray<float> seen(std::vector<float>{0});
      for (int round = 0; round < 50; ++round) {
        launch(kernel_of<add>, 1, 1, 0, streams.first, value.data(), 1.0F);
        cudaMemcpyAsync(seen.data(), value.data(), 4, cudaMemcpyDeviceToHost, streams.first);
        cudaStreamSynchronize(streams.first);
        right += *seen.data() == static_cast<float>(round + 1) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(right, 200);
}

TEST(SimStreamsDeathTest, TheProcessEndsWhileWorkIsLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        sim::machine().enqueue(nullptr, [] { return false; });  // never done
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_EXIT(
      {
        cudaLaunchHostFunc(
            nullptr, [](void*) { std::exit(4); }, nullptr);
        cudaDeviceSynchronize();
      },
      testing::ExitedWithCode(4), "");
}

}  // namespace
}  // namespace trireme
