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

// The same for data whose result goes to `into`, which peers will write if both lie in the arena;
// if only one of them does, the data comes in pieces.
void offer_both(ShmGroup& group, const void* data, void* into, std::int64_t bytes);
// Where rank r wants the result. Only after offer_both(), where any_staged() is false and the data
// is not small.
std::byte* wanted(const ShmGroup& group, int r);

// Where rank r's data lies, as posted; null if it comes in pieces.
const std::byte* offered(const ShmGroup& group, int r);

// Whether any rank's data comes in pieces, or lies in the arena.
bool any_staged(const ShmGroup& group);
bool any_in_place(const ShmGroup& group);

}  // namespace trireme
