// Implements the collective operations in shared memory. Every operation starts with a post by each
// rank. It says what the rank runs, which is compared before any data is touched, and where its
// data is (layout.h). With n ranks and S bytes:
//   up to kSmallReadBytes / (n-1)  the data comes with the post, in the cache line itself or in a
//                                  slot; each rank reads what it needs from all others and adds in
//                                  tree order itself: one meeting. Data in the arena above
//                                  kMostCopiedBytes (offer_data.h) is not copied: next row
//   buffers in the arena           all_reduce: each rank reduces its n-th part, reading all peers'
//                                  buffers in place, and writes it into all of them; others: each
//                                  copies what it needs from its peers' buffers; two meetings
//   other buffers                  pieces of kChunkBytes pass through inlets that stay in the
//                                  cache, one meeting per piece: while a piece is put in, the
//                                  previous one is reduced or taken out
// A reduction works in place only if every rank's data lies in the arena. If only some of it does,
// all data passes through inlets, small data too. Thread rule: algorithms.h.
#pragma once

#include <memory>

#include "mpi/collective/algorithms.h"
#include "mpi/shm/group.h"

namespace trireme {

// Most bytes that a rank reads from its peers' slots in one operation.
inline constexpr std::int64_t kSmallReadBytes = 128 << 10;

// The group outlives the algorithms.
std::unique_ptr<Algorithms> make_shm_algorithms(ShmGroup& group);

}  // namespace trireme
