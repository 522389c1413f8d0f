#include "src/device/cuda/cuda_counts.h"

#include <atomic>

#include <cuda_flavour.h>

#include "src/device/cuda_device.h"

namespace trireme::cuda {
namespace {

thread_local std::int64_t waits_of_this_thread = 0;  // without blocking calls of the runtime
thread_local std::int64_t graphs_of_this_thread = 0;
std::atomic<std::int64_t> allocations_of_all = 0;
std::atomic<std::int64_t> staged_by_all = 0;

}  // namespace

void count_wait() { ++waits_of_this_thread; }

void count_allocation() { ++allocations_of_all; }

void count_staged_copy() { ++staged_by_all; }

void count_graph_launch() { ++graphs_of_this_thread; }

DeviceUse device_use() {
  return {waits_of_this_thread + blocking_calls(), allocations_of_all.load(), graphs_of_this_thread,
          staged_by_all.load()};
}

}  // namespace trireme::cuda
