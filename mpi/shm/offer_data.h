// The first half of every operation in shared memory: this rank says where its data is, all ranks
// post, and then each rank can find everyone's data. Thread rule: group.h.
#pragma once

#include "mpi/shm/group.h"

namespace trireme {

// Data up to this size is copied even if it lies in the arena. Above it, copying takes longer than
// the second meeting that work in place needs (docs/performance.md).
inline constexpr std::int64_t kMostCopiedBytes = 1 << 10;

// Returns whether data of this size may be copied with the post. All ranks agree for equal sizes.
bool is_small(const ShmGroup& group, std::int64_t bytes);

// Sets the source of this rank's next post. Peers read data in the arena above kMostCopiedBytes in
// place, and small data from a copy; other data passes through inlets in pieces. For data that no
// rank will read, pass null and 0 bytes.
void offer(ShmGroup& group, const void* data, std::int64_t bytes);

// Does the same for data whose result goes to `into`, which peers will write if all_in_place(). The
// data counts as in the arena only if both lie there.
void offer_both(ShmGroup& group, const void* data, void* into, std::int64_t bytes);
// Returns where rank r wants the result. Precondition: offer_both() was used and all_in_place().
std::byte* wanted(const ShmGroup& group, int r);

// Returns where rank r's data lies, as posted, or null if it passes through inlets.
const std::byte* offered(const ShmGroup& group, int r);

// Return whether any rank's data passes through inlets, or is read in place.
bool any_staged(const ShmGroup& group);
bool any_in_place(const ShmGroup& group);
// Returns whether the data of every rank was copied with its post.
bool all_with_posts(const ShmGroup& group);
// Returns whether the data of every rank is read in place.
bool all_in_place(const ShmGroup& group);

}  // namespace trireme
