// Copies of what may be empty.
#pragma once

#include <cstdint>
#include <cstring>

namespace trireme {

inline void copy_bytes(const void* from, void* to, std::int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace trireme
