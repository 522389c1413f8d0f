// Measures the speed of dd(1) with direct I/O on a path: the ceiling of the checkpoint benchmark.
// If dd is missing, a loop of our own makes the same system calls.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trireme {

// Times dd if=/dev/zero of=FILE bs=8M oflag=direct conv=fsync, with `bytes` rounded up to 8 MiB.
double dd_write_seconds(const std::filesystem::path& file, std::int64_t bytes);
// Times dd if=FILE of=/dev/null bs=8M iflag=direct.
double dd_read_seconds(const std::filesystem::path& file);

}  // namespace trireme
