// Shared by all fuzz targets. A target takes any bytes, as libFuzzer passes them. The code under
// test may refuse them with the error that its interface documents; any other outcome ends the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "src/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace trireme {

inline std::string_view text_of(const std::uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

// Calls read(), which may throw an `Expected` but nothing else.
template <class Expected, class Read>
void refuses_only_with(Read read) {
  try {
    read();
  } catch (const Expected&) {
    // The input was refused.
  }
}

// A file that exists only in memory, for code that reads by path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view contents) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0);
    require(::write(fd_, contents.data(), contents.size()) ==
            static_cast<ssize_t>(contents.size()));
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace trireme
