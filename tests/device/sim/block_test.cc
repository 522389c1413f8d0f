// Tests the execution of kernels: barriers, shuffles, shared memory, asynchronous copies, and the
// messages about mistakes.
#include "src/device/sim/block.h"

#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>

#include "src/device/sim/shared_memory.h"
#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::launch;

constexpr unsigned kAll = 0xFFFFFFFFu;
constexpr int kThreads = 256;

std::vector<float> first_numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  return numbers;
}

__global__ void number_threads(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned at = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[at] = static_cast<int>(at);
}

template <bool kHasFirst, bool kHasSecond>
__global__ void sum_twice(const float* from, float* sums) {
  __shared__ float partial[kThreads];
  const unsigned self = threadIdx.x;
  for (int round = 0; round < 2; ++round) {
    partial[self] = from[self] * static_cast<float>(round + 1);
    if (kHasFirst) {
      __syncthreads();
    }
    float sum = 0;
    for (int at = 0; at < kThreads; ++at) {
      sum += partial[at];
    }
    if (kHasSecond) {
      __syncthreads();
    }
    sums[round * kThreads + static_cast<int>(self)] = sum;
  }
}

// Returns whether every thread saw the right sums.
template <bool kHasFirst, bool kHasSecond>
bool sums_are_right(std::uint64_t seed) {
  const SeedScope scope(seed);
  DeviceArray<float> from(first_numbers(kThreads));
  DeviceArray<float> sums(2 * kThreads);
  launch(kernel_of<sum_twice<kHasFirst, kHasSecond>>, 1, kThreads, 0, nullptr, from.data(),
         sums.data());
  const float right = kThreads * (kThreads + 1) / 2;
  bool all = true;
  const std::vector<float> seen = sums.read();
  for (int at = 0; at < 2 * kThreads; ++at) {
    all = all && seen[static_cast<std::size_t>(at)] == (at < kThreads ? right : 2 * right);
  }
  return all;
}

TEST(SimBlock, EveryThreadOfEveryBlockRunsOnce) {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const SeedScope scope(seed);
    const dim3 grid(3, 2, 4);
    const dim3 block(5, 3, 7);
    DeviceArray<int> out(std::size_t{24} * 105);
    launch(kernel_of<number_threads>, grid, block, 0, nullptr, out.data());
    const std::vector<int> seen = out.read();
    for (std::size_t at = 0; at < seen.size(); ++at) {
      ASSERT_EQ(seen[at], static_cast<int>(at)) << "seed " << seed;
    }
  }
}

TEST(SimBlock, AMissingBarrierGivesAWrongSumUnderEverySeed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE((sums_are_right<true, true>(seed))) << seed;
    EXPECT_FALSE((sums_are_right<false, true>(seed))) << seed;
    EXPECT_FALSE((sums_are_right<true, false>(seed))) << seed;
  }
}

__global__ void shuffle_lanes(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int* own = out + lane * 8;
  own[0] = __shfl_sync(kAll, lane, 5);
  own[1] = __shfl_xor_sync(kAll, lane, 16);
  own[2] = __shfl_down_sync(kAll, lane, 3);
  own[3] = __shfl_up_sync(kAll, lane, 3);
  own[4] = __shfl_sync(kAll, lane, 2, 8);
  own[5] = static_cast<int>(__ballot_sync(kAll, lane % 2));
  own[6] = __all_sync(kAll, lane < 32) * 2 + __any_sync(kAll, lane == 40);
  own[7] = 0;
  if (lane < 16) {  // only half of the warp
    const unsigned low = 0xFFFFu;
    own[7] = __shfl_xor_sync(low, lane, 1) + static_cast<int>(__reduce_add_sync(low, 1u));
  }
}

TEST(SimBlock, ShufflesReadTheLanesThatTheyName) {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const SeedScope scope(seed);
    DeviceArray<int> out(32 * 8);
    launch(kernel_of<shuffle_lanes>, 1, 32, 0, nullptr, out.data());
    const std::vector<int> seen = out.read();
    for (int lane = 0; lane < 32; ++lane) {
      const int* own = seen.data() + lane * 8;
      EXPECT_EQ(own[0], 5);
      EXPECT_EQ(own[1], lane ^ 16);
      EXPECT_EQ(own[2], lane + 3 < 32 ? lane + 3 : lane);
      EXPECT_EQ(own[3], lane >= 3 ? lane - 3 : lane);
      EXPECT_EQ(own[4], lane / 8 * 8 + 2);
      EXPECT_EQ(own[5], static_cast<int>(0xAAAAAAAAu));
      EXPECT_EQ(own[6], 2);
      EXPECT_EQ(own[7], lane < 16 ? (lane ^ 1) + 16 : 0);
    }
  }
}

__global__ void read_fresh_shared(float* out) {
  __shared__ float fixed[8];
  const float* dynamic = cuda::dynamic_shared<float>();
  out[threadIdx.x * 2] = fixed[threadIdx.x];
  out[threadIdx.x * 2 + 1] = dynamic[threadIdx.x];
  __syncthreads();
  fixed[threadIdx.x] = 1;
}

TEST(SimBlock, SharedMemoryHoldsNanAtFirst) {
  DeviceArray<float> out(16);
  for (int launches = 0; launches < 2; ++launches) {
    launch(kernel_of<read_fresh_shared>, 1, 8, 8 * sizeof(float), nullptr, out.data());
    const std::vector<float> seen = out.read();
    for (std::size_t at = 0; at < seen.size(); ++at) {
      const bool is_dynamic = at % 2 == 1;
      EXPECT_TRUE(std::isnan(seen[at]) || !(is_dynamic || sim::StaticShared::is_filled())) << at;
    }
  }
}

template <bool kWaits>
__global__ void copy_through_shared(const float4* from, float4* to) {
  auto* shared = cuda::dynamic_shared<float4>();
  cuda::copy_async_16(shared + threadIdx.x, from + threadIdx.x);
  cuda::commit_copies();
  cuda::copy_async_16(shared + 32 + threadIdx.x, from + threadIdx.x);
  cuda::commit_copies();
  if (kWaits) {
    cuda::wait_copies<1>();
  }
  to[threadIdx.x] = shared[threadIdx.x];
  cuda::wait_copies<0>();
}

TEST(SimBlock, AsynchronousCopiesArriveWhenTheThreadWaits) {
  DeviceArray<float4> from(std::vector<float4>(32, make_float4(1, 2, 3, 4)));
  DeviceArray<float4> to(32);
  launch(kernel_of<copy_through_shared<true>>, 1, 32, 1024, nullptr, from.data(), to.data());
  EXPECT_EQ(to.read()[31].w, 4);
  launch(kernel_of<copy_through_shared<false>>, 1, 32, 1024, nullptr, from.data(), to.data());
  EXPECT_TRUE(std::isnan(to.read()[31].w));
}

__global__ void note_order(int* order, int* count) {
  order[atomicAdd(count, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST(SimBlock, SeedsShuffleThreadsAndBlocksRepeatably) {
  std::set<std::vector<int>> orders;
  for (const std::uint64_t seed : {0, 1, 2, 3, 1}) {
    const SeedScope scope(seed);
    DeviceArray<int> order(std::size_t{4} * 64);
    DeviceArray<int> count(std::vector<int>{0});
    launch(kernel_of<note_order>, 4, 64, 0, nullptr, order.data(), count.data());
    orders.insert(order.read());
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST(SimBlock, RefusesShapesThatADeviceDoesNotHave) {
  DeviceArray<int> out(1);
  EXPECT_THROW(launch(kernel_of<number_threads>, 1, 2048, 0, nullptr, out.data()),
               std::runtime_error);
  EXPECT_THROW(launch(kernel_of<number_threads>, 0, 32, 0, nullptr, out.data()),
               std::runtime_error);
  EXPECT_THROW(launch(kernel_of<number_threads>, dim3(1, 70000), 32, 0, nullptr, out.data()),
               std::runtime_error);
  EXPECT_THROW(launch(kernel_of<number_threads>, 1, 32, 100 << 10, nullptr, out.data()),
               std::runtime_error);
  cuda::allow_shared(cuda::kernel_of<number_threads>, 100 << 10);
  launch(kernel_of<number_threads>, 1, 1, 100 << 10, nullptr, out.data());
  EXPECT_THROW(cuda::allow_shared(cuda::kernel_of<number_threads>, 300 << 10), std::runtime_error);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

__global__ void half_waits_for_warp() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}
__global__ void some_end_early() {
  if (threadIdx.x != 7) {
    __syncthreads();
  }
}
__global__ void foreign_mask() { __shfl_sync(0xFFu, 1, 0); }
__global__ void different_words() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __shfl_sync(kAll, 1, 0);
  }
}
__global__ void forget_copies(const float* from) {
  cuda::copy_async_16(cuda::dynamic_shared<float4>(), from);
}
__global__ void throw_error() { throw std::runtime_error("thrown on purpose"); }
__global__ void call_abort() { std::abort(); }
// The sanitizer of undefined behaviour must leave the mistake to the device.
[[gnu::no_sanitize("undefined")]] __global__ void read_null(int* out) {
  const volatile int* null = nullptr;
  *out = *null;
}
__global__ void read_behind_shared(int* out) {
  const volatile int* shared = cuda::dynamic_shared<int>();
  *out = shared[32 + threadIdx.x];
}
__global__ void misaligned(const float* from, float* to) {
  *to = __ldg(reinterpret_cast<const float4*>(from + 1)).x;
}
__global__ void fill_stack(int* out, int depth) {
  volatile int local[1000] = {};
  local[depth % 1000] = depth;
  if (depth > 0) {
    fill_stack(out, depth - 1);
  }
  *out += local[5];
}

template <auto kFunction, class... Arguments>
void run(Arguments... arguments) {
  launch(kernel_of<kFunction>, 2, 32, 128, nullptr, arguments...);
  cudaDeviceSynchronize();
}

TEST(SimBlockDeathTest, NamesBlockAndThreadOfMistakes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const SeedScope scope(0);
  EXPECT_DEATH(run<half_waits_for_warp>(),
               "block \\(0, 0, 0\\), thread \\(31, 0, 0\\): deadlock: 16");
  EXPECT_DEATH(run<some_end_early>(), "thread \\(7, 0, 0\\): the thread ends while others");
  EXPECT_DEATH(run<foreign_mask>(), "thread \\(8, 0, 0\\): the lane is not in the mask");
  EXPECT_DEATH(run<different_words>(),
               "thread \\(16, 0, 0\\): lanes of one warp wait for each other");
  EXPECT_DEATH(run<throw_error>(), "thread \\(0, 0, 0\\): thrown on purpose");
  EXPECT_DEATH(run<call_abort>(), "thread \\(0, 0, 0\\): the kernel called abort");
}

TEST(SimBlockDeathTest, NamesBlockAndThreadOfBadAccesses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const SeedScope scope(0);
  DeviceArray<float> from(8);
  DeviceArray<int> out(std::vector<int>{0});
  DeviceArray<float> to(1);
  EXPECT_DEATH(run<forget_copies>(from.data()), "ends with asynchronous copies under way");
  EXPECT_DEATH(run<read_null>(out.data()),
               "thread \\(0, 0, 0\\): access to an address that is not");
  EXPECT_DEATH(run<read_behind_shared>(out.data()), "behind the end of the dynamic shared memory");
  EXPECT_DEATH(run<misaligned>(from.data(), to.data()), "misaligned address");
  EXPECT_DEATH(run<fill_stack>(out.data(), 100), "local variables need too much memory");
}

}  // namespace
}  // namespace trireme
