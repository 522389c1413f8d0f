// Tests the guard of device memory, and what the runtime's interface refuses.
#include "src/device/sim/device_memory.h"

#include <cmath>
#include <thread>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::launch;

__global__ void store_at(float* to, int at) { to[at] = 1; }
__global__ void load_at(const float* from, float* to) { *to = *from; }

TEST(SimMemory, HoldsNanBeforeItIsWrittenAndAfterItIsFreed) {
  float* memory = nullptr;
  DeviceArray<float> seen(1);
  expect_success(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  launch(kernel_of<load_at>, 1, 1, 0, nullptr, memory, seen.data());
  EXPECT_TRUE(std::isnan(seen.read()[0]));
  expect_success(cudaMemset(memory, 0, 64));
  launch(kernel_of<load_at>, 1, 1, 0, nullptr, memory, seen.data());
  EXPECT_EQ(seen.read()[0], 0);
  expect_success(cudaFree(memory));
  void* again = nullptr;
  expect_success(cudaMalloc(&again, 64));
  EXPECT_EQ(again, memory);
  launch(kernel_of<load_at>, 1, 1, 0, nullptr, memory, seen.data());
  EXPECT_TRUE(std::isnan(seen.read()[0]));
  expect_success(cudaFree(again));
}

TEST(SimMemory, CountsWhatIsFreeAndRefusesMore) {
  std::size_t free_before = 0;
  std::size_t total = 0;
  expect_success(cudaMemGetInfo(&free_before, &total));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  expect_success(cudaMalloc(&memory, 1 << 20));
  std::size_t free_now = 0;
  expect_success(cudaMemGetInfo(&free_now, &total));
  EXPECT_GE(free_before - free_now, std::size_t{1} << 20);
  expect_success(cudaFree(memory));
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  expect_success(cudaMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, free_before);
}

TEST(SimMemory, MergesFreePieces) {
  sim::DeviceMemory memory(1 << 16);
  void* first = memory.take(1000);
  void* second = memory.take(1000);
  void* third = memory.take(1000);
  EXPECT_TRUE(memory.give_back(second));
  EXPECT_TRUE(memory.give_back(first));
  EXPECT_TRUE(memory.give_back(third));
  EXPECT_EQ(memory.free_bytes(), memory.bytes());
  EXPECT_NE(memory.take((1 << 16) - 512), nullptr);
}

TEST(SimMemory, RefusesCopiesOutOfBoundsOrOfPageableMemory) {
  DeviceArray<float> device(8);
  PinnedArray<float> pinned(std::vector<float>(16, 1));
  float pageable[8] = {};
  const auto copy = [](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  };
  EXPECT_EQ(copy(device.data(), pinned.data(), 32, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(copy(device.data(), pinned.data(), 33, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device.data() + 4, pinned.data(), 20, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pinned.data() + 15, device.data(), 8, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(copy(pageable, device.data(), 32, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copy(device.data(), pinned.data(), 32, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(device.data(), 0, 33, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(pinned.data(), 0, 32, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(pageable, device.data(), 32, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(pageable[7], 1);
  EXPECT_EQ(cudaMemcpy2DAsync(device.data(), 16, pinned.data(), 32, 8, 2, cudaMemcpyDefault),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpy2DAsync(device.data(), 16, pinned.data(), 32, 20, 2, cudaMemcpyDefault),
            cudaErrorInvalidValue);
  cudaDeviceSynchronize();
}

TEST(SimMemory, KnowsPinnedMemory) {
  std::vector<float> values(64);
  EXPECT_EQ(cudaHostUnregister(values.data()), cudaErrorHostMemoryNotRegistered);
  expect_success(cudaHostRegister(values.data(), 256, cudaHostRegisterDefault));
  EXPECT_EQ(cudaHostRegister(values.data() + 1, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  cudaPointerAttributes attributes;
  expect_success(cudaPointerGetAttributes(&attributes, values.data() + 63));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  expect_success(cudaHostUnregister(values.data()));
  expect_success(cudaPointerGetAttributes(&attributes, values.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  DeviceArray<float> device(1);
  expect_success(cudaPointerGetAttributes(&attributes, device.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
}

TEST(SimMemory, DescribesTheDevice) {
  cudaDeviceProp properties;
  expect_success(cudaGetDeviceProperties(&properties, 0));
  EXPECT_STREQ(properties.name, "simulated device");
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 99), cudaErrorInvalidDevice);
  char bus[16];
  expect_success(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
  EXPECT_STREQ(bus, "0000:01:00.0");
}

float read_on_host(const float* memory) {
  const volatile float* device = memory;
  return device[0];
}

// The device's thread withdraws the host's access once it has nothing left to do.
void wait_until_closed(const float* memory) {
  while (::access(reinterpret_cast<const char*>(memory), F_OK) == 0 || errno != EFAULT) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(SimMemoryDeathTest, HostAccessesDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  DeviceArray<float> array(8);
  launch(kernel_of<store_at>, 1, 1, 0, nullptr, array.data(),
         1);  // the memory is accessible while this runs
  cudaDeviceSynchronize();
  wait_until_closed(array.data());
  EXPECT_DEATH(read_on_host(array.data()), "code of the host touched device memory");
  float host[8];
  EXPECT_DEATH(
      {
        std::memcpy(host, array.data(), sizeof host);
        EXPECT_EQ(host[3], 0);
      },
      "");
}

TEST(SimMemoryDeathTest, AccessesBehindTheLastAllocationDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        void* memory = nullptr;
        cudaMalloc(&memory, 32);
        launch(kernel_of<store_at>, 1, 1, 0, nullptr, static_cast<float*>(memory), 1 << 20);
        cudaDeviceSynchronize();
      },
      "thread \\(0, 0, 0\\): access to device memory failed|use-after-poison");
}

TEST(SimMemory, LaterAllocationsAreAccessible) {
  DeviceArray<float> first(1);
  launch(kernel_of<store_at>, 1, 1, 0, nullptr, first.data(), 0);
  DeviceArray<float> later(1 << 16);  // behind what the kernel before made accessible
  launch(kernel_of<store_at>, 1, 1, 0, nullptr, later.data(), (1 << 16) - 1);
  EXPECT_EQ(later.read().back(), 1);
  EXPECT_EQ(first.read()[0], 1);
}

TEST(SimMemoryDeathTest, StoresBehindAnAllocationDie) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        void* memory = nullptr;
        cudaMalloc(&memory, 32);
        launch(kernel_of<store_at>, 1, 1, 0, nullptr, static_cast<float*>(memory), 8);
        cudaDeviceSynchronize();
        cudaFree(memory);
      },
      "wrote behind the end of an allocation of 32 bytes|use-after-poison");
}

}  // namespace
}  // namespace trireme
