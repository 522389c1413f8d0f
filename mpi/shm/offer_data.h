// The first half of every operation in shared memory: this rank says where its data is, all post,
// and everybody knows where everybody's is. Rules of ShmGroup.
#pragma once

#include "mpi/shm/group.h"

namespace trireme {

// Whether data of this size comes with the post: the same on all ranks for the same size.
bool is_small(const ShmGroup& group, std::int64_t bytes);

// Sets the source of this rank's next post: copies small data, else looks where it lies. Data that
// nobody will read is null, 0 bytes.
void offer(ShmGroup& group, const void* data, std::int64_t bytes);

// Where rank r's data lies, as posted; null if it comes in pieces.
const std::byte* offered(const ShmGroup& group, int r);

// Whether any rank's data comes in pieces, or lies in the arena.
bool any_staged(const ShmGroup& group);
bool any_in_place(const ShmGroup& group);

}  // namespace trireme
