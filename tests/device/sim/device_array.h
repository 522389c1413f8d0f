// DeviceArray is memory of the simulated device for tests, copied to and from vectors.
#pragma once

#include <cstring>
#include <vector>

#include <cuda_language.h>
#include <gtest/gtest.h>

#include "src/device/sim/machine.h"

namespace trireme {

inline void expect_success(cudaError_t error) { EXPECT_EQ(error, cudaSuccess); }

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    void* memory = nullptr;
    expect_success(cudaMalloc(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { write(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  void write(const std::vector<T>& values) {
    expect_success(
        cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  // Waits for all streams first.
  std::vector<T> read() {
    expect_success(cudaDeviceSynchronize());
    std::vector<T> values(count_);
    expect_success(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

// Pinned memory of the host.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(const std::vector<T>& values) : count_(values.size()) {
    void* memory = nullptr;
    expect_success(cudaMallocHost(&memory, count_ * sizeof(T)));
    data_ = static_cast<T*>(memory);
    std::memcpy(data_, values.data(), count_ * sizeof(T));
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  T* data() { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

// Uses a seed until its end.
class SeedScope {
 public:
  explicit SeedScope(std::uint64_t seed) : earlier_(sim::machine().seed()) {
    sim::machine().set_seed(seed);
  }
  ~SeedScope() { sim::machine().set_seed(earlier_); }
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  std::uint64_t earlier_;
};

}  // namespace trireme
