#include "src/device/cuda/cuda_queue.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/sim/machine.h"

namespace trireme {
namespace {

constexpr Device kDevice{DeviceKind::cuda, 0};
constexpr std::int64_t kCount = 1000;

Stream make_stream() { return {kDevice, 1, cuda::make_queue(0)}; }

std::vector<float> counted_up() {
  std::vector<float> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), 0.5F);
  return numbers;
}

View view_of(std::vector<float>& host) {
  return {host.data(), static_cast<std::int64_t>(host.size()), DType::f32};
}

class CudaQueueTest : public testing::Test {
 protected:
  Pool pool_{kDevice};
  Buffer buffer_ = pool_.allocate(kCount * 4);
  View on_device_ = buffer_.view(DType::f32);
};

TEST_F(CudaQueueTest, CopiesOrdinaryAndPinnedMemory) {
  Stream stream = make_stream();
  std::vector<float> numbers = counted_up();
  stream.copy(on_device_, view_of(numbers));
  numbers.assign(kCount, 0);  // the copy has read its source
  std::vector<float> back(kCount);
  stream.copy(view_of(back), on_device_);
  stream.synchronize();
  EXPECT_EQ(back, counted_up());

  Pool pinned(Device::cpu(), cuda::pinned_memory(0));
  const Buffer host = pinned.allocate(kCount * 4);
  stream.copy(host.view(DType::f32), on_device_);
  stream.clear(on_device_);
  stream.copy(view_of(numbers), host.view(DType::f32));
  stream.copy(view_of(back), on_device_);
  stream.synchronize();
  EXPECT_EQ(numbers, counted_up());
  EXPECT_EQ(back, std::vector<float>(kCount, 0));
}

// Kernels copy what is short, with as wide accesses as its place permits.
TEST_F(CudaQueueTest, CopiesAnyNumberOfBytesAtAnyPlace) {
  Stream stream = make_stream();
  Pool pinned(Device::cpu(), cuda::pinned_memory(0));
  const Buffer host = pinned.allocate(kCount * 4);
  auto* const numbers = static_cast<unsigned char*>(host.data());
  std::iota(numbers, numbers + kCount * 4, static_cast<unsigned char>(1));
  const View bytes = buffer_.view(DType::u8);
  for (const std::int64_t count : {1, 7, 12, 16, 64, 100}) {
    for (const std::int64_t first : {0, 1, 4, 16}) {
      stream.clear(bytes);
      stream.copy(bytes.slice(first, count), host.view(DType::u8).slice(first, count));
      std::vector<unsigned char> back(static_cast<std::size_t>(kCount * 4));
      stream.copy({back.data(), kCount * 4, DType::u8}, bytes);
      stream.synchronize();
      std::vector<unsigned char> expected(back.size());
      std::copy_n(numbers + first, count, expected.begin() + first);
      EXPECT_EQ(back, expected) << count << " from " << first;
    }
  }
}

TEST_F(CudaQueueTest, RefusesToCopyBehindAnAllocation) {
  Stream stream = make_stream();
  Pool pinned(Device::cpu(), cuda::pinned_memory(0));
  const Buffer host = pinned.allocate(1 << 20);
  MemorySource& memory = cuda::device_memory(0);
  void* const taken = memory.take(64);
  const View all = {taken, 68, DType::u8, kDevice};
  EXPECT_NO_THROW(stream.copy(host.view(DType::u8).slice(0, 8), all.slice(56, 8)));
  EXPECT_THROW(stream.copy(host.view(DType::u8).slice(0, 8), all.slice(60, 8)), DeviceError);
  EXPECT_TRUE(cuda::is_one_allocation(taken, 64));
  EXPECT_FALSE(cuda::is_one_allocation(taken, 65));
  stream.synchronize();
  memory.give_back(taken, 64);
}

// A thread that asks whether an event of device 1 has been reached must not make the process a user
// of device 0, which another process may have.
TEST(CudaQueueDeathTest, ThreadsThatAskForEventsUseTheirDeviceOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [] {
    Stream stream({DeviceKind::cuda, 1}, 1, cuda::make_queue(1, cuda::QueueUse::copies));
    Pool pinned(Device::cpu(), cuda::pinned_memory(1));
    Buffer host = pinned.allocate(64);
    stream.clear(host.view(DType::u8));
    std::thread([event = stream.record(), other = std::move(host)]() mutable {
      event.wait();
      other = Buffer();
    }).join();
    std::exit(0);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(0), "^$");
}

// A later copy must not take the pinned buffer of one that has not begun yet.
TEST_F(CudaQueueTest, KeepsPinnedBuffersUntilTheirCopiesEnd) {
  Stream stream = make_stream();
  const Buffer second = pool_.allocate(kCount * 4);
  std::promise<void> open;
  std::vector<float> numbers = counted_up();
  std::vector<float> zeros(kCount);
  std::vector<float> back(kCount);
  stream.run([&] { open.get_future().wait(); });
  stream.copy(on_device_, view_of(numbers));
  stream.copy(second.view(DType::f32), view_of(zeros));
  stream.copy(view_of(back), on_device_);
  open.set_value();
  stream.synchronize();
  EXPECT_EQ(back, counted_up());
}

TEST_F(CudaQueueTest, HasDeviceMemoryThatTheHostCannotRead) {
  EXPECT_THROW((void)as<float>(on_device_), InternalError);
  EXPECT_EQ(buffer_.device(), kDevice);
}

TEST_F(CudaQueueTest, RunsWorkOfTheHostInOrder) {
  Stream stream = make_stream();
  std::promise<void> open;
  std::atomic<int> ran = 0;
  stream.run([&] {
    open.get_future().wait();
    ran = 1;
  });
  const StreamEvent event = stream.record();
  EXPECT_FALSE(event.reached());
  open.set_value();
  event.wait();
  EXPECT_EQ(ran, 1);
}

// Without the wait, some of the seeds would let the second stream go first.
TEST_F(CudaQueueTest, WaitsForAnotherStream) {
  const std::uint64_t before = sim::machine().seed();
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    sim::machine().set_seed(seed);
    Stream first = make_stream();
    Stream second = make_stream();
    std::promise<void> open;
    std::vector<float> numbers = counted_up();
    std::vector<float> back(kCount);
    first.clear(on_device_);
    first.run([&] { open.get_future().wait(); });
    first.copy(on_device_, view_of(numbers));
    second.wait(first.record());
    second.copy(view_of(back), on_device_);
    open.set_value();
    second.synchronize();
    EXPECT_EQ(back, counted_up()) << "seed " << seed;
  }
  sim::machine().set_seed(before);
}

TEST_F(CudaQueueTest, WaitsForAStreamOfTheHost) {
  Stream host(Device::cpu(), 1, make_worker_queue());
  Stream stream = make_stream();
  std::promise<void> open;
  std::atomic<bool> ran = false;
  host.run([&] {
    open.get_future().wait();
    ran = true;
  });
  bool seen = false;
  stream.wait(host.record());
  stream.run([&] { seen = ran; });
  open.set_value();
  stream.synchronize();
  EXPECT_TRUE(seen);
}

TEST_F(CudaQueueTest, ThrowsWhatWorkOfTheHostHasThrown) {
  Stream stream = make_stream();
  bool ran = false;
  stream.synchronize();
  stream.run([] { throw std::runtime_error("broken"); });
  stream.run([&] { ran = true; });
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_FALSE(ran);
}

TEST_F(CudaQueueTest, ThrowsTheErrorOfAStreamThatItWaitedFor) {
  Stream first = make_stream();
  Stream second = make_stream();
  first.run([] { throw std::runtime_error("broken"); });
  second.wait(first.record());
  EXPECT_THROW(second.synchronize(), std::runtime_error);
}

TEST_F(CudaQueueTest, MeasuresTimeOnTheDevice) {
  Stream stream = make_stream();
  const StreamMark before = stream.mark();
  stream.run([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  const StreamMark between = stream.mark();
  const StreamMark after = stream.mark();
  stream.synchronize();
  EXPECT_GE(before.seconds_to(between), 0.02);
  EXPECT_NEAR(before.seconds_to(after), before.seconds_to(between) + between.seconds_to(after),
              1e-5);
}

TEST_F(CudaQueueTest, CountsWaitsAndAllocations) {
  Stream stream = make_stream();
  std::vector<float> numbers = counted_up();
  stream.copy(on_device_, view_of(numbers));
  stream.synchronize();
  const cuda::DeviceUse before = cuda::device_use();
  const auto change = [&] {
    const cuda::DeviceUse now = cuda::device_use();
    return std::pair(now.waits - before.waits, now.allocations - before.allocations);
  };
  stream.copy(on_device_, view_of(numbers));  // over the pinned memory of the copy before
  const StreamEvent event = stream.record();
  EXPECT_EQ(change(), std::pair(0L, 0L));
  event.wait();
  EXPECT_EQ(change(), std::pair(1L, 0L));
  event.wait();  // it is known to have been reached
  EXPECT_EQ(change(), std::pair(1L, 0L));
  cuda::device_memory(0).give_back(cuda::device_memory(0).take(64), 64);
  EXPECT_EQ(change(), std::pair(2L, 1L)) << "the simulated device counts calls that block";
}

// Pinned memory is reused only after a wait, so that a step takes the same each time.
TEST_F(CudaQueueTest, KeepsPinnedMemoryUntilTheHostWaits) {
  Stream stream = make_stream();
  std::vector<float> numbers = counted_up();
  const auto allocations_of_a_round = [&] {
    const cuda::DeviceUse before = cuda::device_use();
    for (int copy = 0; copy < 3; ++copy) {
      stream.copy(on_device_, view_of(numbers));
      while (!stream.record().reached()) {
      }
    }
    stream.synchronize();
    return cuda::device_use().allocations - before.allocations;
  };
  EXPECT_EQ(allocations_of_a_round(), 3);
  EXPECT_EQ(allocations_of_a_round(), 0);
}

TEST_F(CudaQueueTest, NamesTheDeviceThatIsFull) {
  try {
    (void)cuda::device_memory(1).take(std::int64_t{1} << 40);
    ADD_FAILURE() << "a terabyte was found";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("out of memory on CUDA device 1"));
    EXPECT_THAT(error.what(), testing::HasSubstr("1 TiB more"));
  }
}

TEST(CudaFacts, DescribeTheDevices) {
  EXPECT_EQ(cuda::back_end(), cuda::BackEnd::simulated);
  ASSERT_GE(cuda::device_count(), 2);
  const cuda::DeviceFacts first = cuda::device_facts(0);
  EXPECT_THAT(first.name, testing::HasSubstr("imulated"));
  EXPECT_TRUE(first.uuid.starts_with("GPU-"));
  EXPECT_EQ(first.uuid.size(), 40U);
  EXPECT_GT(first.bytes, 0);
  EXPECT_LE(first.free_bytes, first.bytes);
  EXPECT_NE(first.uuid, cuda::device_facts(1).uuid);
}

}  // namespace
}  // namespace trireme
