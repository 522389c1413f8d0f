// The first half of every operation in shared memory: this rank says where its data is, all post,
// and everybody knows where everybody's is. Rules of ShmGroup.
#pragma once

#include "mpi/shm/group.h"

namespace trireme {

// The most that is copied although it lies in the arena: above it, copying takes longer than the
// second meeting that work in place needs (docs/performance.md).
inline constexpr std::int64_t kMostCopiedBytes = 1 << 10;

// Whether data of this size may come with the post: the same on all ranks for the same size.
bool is_small(const ShmGroup& group, std::int64_t bytes);

// Sets the source of this rank's next post. Peers read data in the arena above kMostCopiedBytes
// where it lies, and small data from a copy; other data comes in pieces. Data that nobody will read
// is null, 0 bytes.
void offer(ShmGroup& group, const void* data, std::int64_t bytes);

// The same for data whose result goes to `into`, which peers will write if all_in_place(): data
// counts as the arena's only if both lie there.
void offer_both(ShmGroup& group, const void* data, void* into, std::int64_t bytes);
// Where rank r wants the result. Only after offer_both(), where all_in_place() is true.
std::byte* wanted(const ShmGroup& group, int r);

// Where rank r's data lies, as posted; null if it comes in pieces.
const std::byte* offered(const ShmGroup& group, int r);

// Whether any rank's data comes in pieces, or lies in the arena.
bool any_staged(const ShmGroup& group);
bool any_in_place(const ShmGroup& group);
// Whether the data of every rank was copied into its post.
bool all_with_posts(const ShmGroup& group);
// Whether the data of every rank lies in the arena, where the others can read it.
bool all_in_place(const ShmGroup& group);

}  // namespace trireme
