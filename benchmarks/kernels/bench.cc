#include "benchmarks/kernels/bench.h"

#include <chrono>
#include <vector>

#include <omp.h>

#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr Sizes kOfCpu{1024, 1024, 124475904, 2048, 1, 1024};
constexpr Sizes kOfGpu{65536, 8192, 124475904, 8192, 32, 1024};
constexpr Sizes kOfSimulation{8, 2, 70001, 64, 1, 40};
// This many launches are timed together, so that the cost of the events is negligible.
constexpr int kLaunches = 10;

std::shared_ptr<StreamQueue> queue_of(Device device) {
  return device.is_host() ? nullptr : cuda::make_queue(device.index);
}

}  // namespace

Device& measured_device() {
  static Device device = Device::cpu();
  return device;
}

bool is_simulated() {
  return !measured_device().is_host() && cuda::back_end() == cuda::BackEnd::simulated;
}

Bench::Bench()
    : sizes(is_simulated() ? kOfSimulation : (measured_device().is_host() ? kOfCpu : kOfGpu)),
      kernels(kernels_for(measured_device())),
      stream(measured_device(), omp_get_max_threads(), queue_of(measured_device())),
      pool(measured_device()) {}

Buffer Bench::filled(std::int64_t count, DType dtype, float value) {
  Buffer buffer = pool.allocate(count * size_of(dtype));
  kernels.fill(stream, buffer.view(dtype), value);
  return buffer;
}

Buffer Bench::ids(std::int64_t count, std::int64_t limit) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(limit));
  }
  Buffer buffer = pool.allocate(count * 4);
  stream.copy(buffer.view(DType::i32), {numbers.data(), count, DType::i32});
  stream.synchronize();
  return buffer;
}

// Returns the seconds of one call.
double Bench::seconds(const std::function<void()>& f) {
  if (is_simulated()) {
    return cuda::device_seconds(stream, f);
  }
  if (!stream.device().is_host()) {
    f();  // the first call allocates scratch memory and chooses algorithms
    return cuda::device_seconds(stream,
                                [&] {
                                  for (int i = 0; i < kLaunches; ++i) {
                                    f();
                                  }
                                }) /
           kLaunches;
  }
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace trireme
