// The collective operations in shared memory. Every operation starts with a post of each rank: what
// it runs, compared before any data is touched, and where its data is (layout.h). With n ranks and
// S bytes:
//   up to kSmallReadBytes / (n-1)  the data comes with the post, in the cache line itself or in a
//                                  slot; each rank reads what it needs of all, and adds in tree
//                                  order itself: one meeting. Data in the arena above
//                                  kMostCopiedBytes (offer_data.h) is not copied: next row
//   buffers of the arena           all_reduce: each rank reduces its n-th part, reading all peers'
//                                  buffers in place, and writes it into all of them; others: each
//                                  copies what it needs from its peers' buffers; two meetings
//   other buffers                  pieces of kChunkBytes pass through inlets that stay in the
//                                  cache, one meeting a piece: while a piece is put in, the last
//                                  one is reduced or taken out
// A reduction works in place only if every rank's data lies in the arena; otherwise all data passes
// through inlets, small data too.
// Thread rule: algorithms.h.
#pragma once

#include <memory>

#include "mpi/collective/algorithms.h"
#include "mpi/shm/group.h"

namespace trireme {

// Bytes that a rank reads of its peers' slots, at most.
inline constexpr std::int64_t kSmallReadBytes = 128 << 10;

// The group outlives them.
std::unique_ptr<Algorithms> make_shm_algorithms(ShmGroup& group);

}  // namespace trireme
