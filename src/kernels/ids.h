// Checks token ids before they index tables, since an id out of range would access other memory.
#pragma once

#include <cstdint>

#include "src/device/device.h"

namespace trireme {

// Throws InternalError unless 0 <= ids[i] < limit for all i32 ids. The dataset's reader has already
// refused such tokens, so this is only a safeguard.
void check_ids(const ConstView& ids, std::int64_t count, std::int64_t limit);
// Does the same, but accepts kIgnoredTarget.
void check_targets(const ConstView& targets, std::int64_t count, std::int64_t limit);

}  // namespace trireme
