// Rates of a node's memory, disk and shared memory, measured within bounded time. Each uses the
// caller's thread and as many more as asked for, and leaves nothing behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

namespace trireme {

// MB/s of STREAM's triad a[i] = b[i] + s c[i] on all threads at once, 24 bytes counted an element;
// one sample a round, over arrays far larger than any cache.
std::vector<double> memory_rates(int threads, int rounds);

struct DiskRates {
  std::vector<double> write, read;  // MB/s, a sample for each block
};
// Of a file in `folder`, past the page cache where the file system can (O_DIRECT), ended by fsync;
// it grows until `bytes` or half of the time are reached. IoError and its like where the disk says
// no.
DiskRates disk_rates(const std::filesystem::path& folder, std::int64_t bytes,
                     std::chrono::duration<double> limit);

// MB/s of filling fresh shared memory in `folder` (/dev/shm): pages that are handed out and
// written.
std::vector<double> shared_memory_rates(const std::filesystem::path& folder, int rounds);

}  // namespace trireme
