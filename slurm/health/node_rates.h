// Measures the rates of a node's memory, disk and shared memory within bounded time. The functions
// leave nothing behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

namespace trireme {

// Returns the rates in MB/s of STREAM's triad a[i] = b[i] + s c[i] on all threads at once, counting
// 24 bytes per element: one sample per round, over arrays far larger than any cache.
std::vector<double> memory_rates(int threads, int rounds);

struct DiskRates {
  std::vector<double> write, read;  // MB/s, one sample per block
};
// Writes a file in `folder` and reads it back. It bypasses the page cache where the file system
// allows (O_DIRECT) and ends with fsync. Writing stops at `bytes` or after half of the time limit.
// Throws IoError or another Error if the disk fails.
DiskRates disk_rates(const std::filesystem::path& folder, std::int64_t bytes,
                     std::chrono::duration<double> limit);

// Returns the rates in MB/s at which fresh shared memory in `folder` (/dev/shm) can be allocated
// and written.
std::vector<double> shared_memory_rates(const std::filesystem::path& folder, int rounds);

}  // namespace trireme
