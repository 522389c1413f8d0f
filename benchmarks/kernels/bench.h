// Bench holds what every kernel benchmark uses: the kernel table and a stream of the measured
// device, sizes that fit the device, and a pool for buffers full of small numbers.
#pragma once

#include <benchmark/benchmark.h>

#include "src/compute/kernel_choice.h"
#include "src/device/cuda_timing.h"
#include "src/device/pool.h"

namespace trireme {

// Arrays must be several times larger than the caches: the L2 cache of an H100 has 50 MB.
struct Sizes {
  std::int64_t rows;        // B * T of activations
  std::int64_t logit_rows;  // rows whose logits exist at a time
  std::int64_t parameters;
  std::int64_t product;  // M, N and K of the product
  std::int64_t batch;    // of attention, with 12 heads of 64 channels
  std::int64_t time;
};

// Returns the device that this process measures; main() sets it before the first benchmark.
Device& measured_device();
// On a simulated device, kernels run once over small arrays, and nothing is timed.
bool is_simulated();

struct Bench {
  Bench();
  Buffer filled(std::int64_t count, DType dtype, float value = 0.01F);
  Buffer ids(std::int64_t count, std::int64_t limit);

  // Times f(), which reads and writes `bytes` bytes in memory, or executes `flops` operations.
  template <class F>
  void measure(benchmark::State& state, std::int64_t bytes, F f, double flops = 0) {
    for (auto _ : state) {
      state.SetIterationTime(seconds(f));
    }
    if (bytes > 0) {
      state.SetBytesProcessed(state.iterations() * bytes);
    }
    if (flops > 0) {
      state.counters["flops_per_second"] = benchmark::Counter(
          flops * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
    }
  }

  Sizes sizes;
  const Kernels& kernels;
  Stream stream;
  Pool pool;

 private:
  double seconds(const std::function<void()>& f);
};

// Times are measured by the device's clock, or for the CPU by the host's.
#define TRIREME_BENCHMARK(name) BENCHMARK(name)->Unit(benchmark::kMicrosecond)->UseManualTime()

}  // namespace trireme
