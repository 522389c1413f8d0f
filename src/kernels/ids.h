// Token ids index tables: one that is out of range would read or write foreign memory.
#pragma once

#include <cstdint>

#include "src/device/device.h"

namespace trireme {

// InternalError unless 0 <= ids[i] < limit for all i32 ids. The data's reader has refused such
// tokens before; this is the last door.
void check_ids(const ConstView& ids, std::int64_t count, std::int64_t limit);

}  // namespace trireme
