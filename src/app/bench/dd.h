// What dd(1) reaches with direct I/O on a path: the ceiling of the checkpoint benchmark. Where
// there is no dd, a loop of our own does the same system calls.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trireme {

// dd if=/dev/zero of=FILE bs=8M oflag=direct conv=fsync, `bytes` rounded up to 8 MiB.
double dd_write_seconds(const std::filesystem::path& file, std::int64_t bytes);
// dd if=FILE of=/dev/null bs=8M iflag=direct
double dd_read_seconds(const std::filesystem::path& file);

}  // namespace trireme
