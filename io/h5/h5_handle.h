// H5Handle owns any handle of libhdf5 (hid_t).
#pragma once

#include <cstdint>

#include "src/base/unique_handle.h"

namespace trireme {

struct H5HandleTraits {
  using Handle = std::int64_t;
  static Handle none() { return -1; }
  static void close(Handle handle);
};
using H5Handle = UniqueHandle<H5HandleTraits>;

}  // namespace trireme
