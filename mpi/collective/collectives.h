// Implements the collective operations over a transport. There is one algorithm for each, which all
// transports share, so that all give the same bits. Each returns when its result is complete; sends
// may still be under way, and the operation ends when its exchange has settled.
//
// Operations on up to kSmallBytes are in small_collectives.h. Larger ones start with a greeting of
// ceil(log2(n)) steps (greeting.h), so that no data is touched unless all ranks run the same
// operation. Sums follow the canonical halving tree over the ranks (communicator.h). With n ranks
// and S bytes, each rank then sends and receives:
//   all_reduce      n a power of two: recursive halving, bit 0 first, then doubling back:
//                   2 log2(n) steps, 2 S (n-1)/n bytes (Thakur, Rabenseifner, Gropp, 2005);
//                   other n: up the tree to rank 0 and down again, in segments: 2 ceil(log2(n))
//                   steps; or, with SumOrder::any, two rings: 2 (n-1) steps, 2 S (n-1)/n bytes
//   reduce_scatter  n a power of two: the halving only; other n: as all_reduce, or one ring
//   all_gather      n a power of two: the doubling only, S (n-1)/n bytes; other n: a ring of n-1
//                   steps
//   barrier         the greeting: dissemination (Hensgen, Finkel, Manber, 1988)
//   broadcast       down the halving tree, in segments: ceil(log2(n)) steps
//   all_to_all      for any size, after the greeting: every rank sends every other the size of its
//                   block, and the block itself if it has up to kInlineBytes; then the larger
//                   blocks
#pragma once

#include <cstddef>
#include <vector>

#include "mpi/collective/algorithms.h"

namespace trireme {

// Memory for data that was received but not added yet. It grows to what the operations need (a few
// segments) and does not shrink. Used by one thread at a time.
class Scratch {
 public:
  std::byte* bytes(std::int64_t n);
  float* widened(std::int64_t n);

 private:
  std::vector<std::byte> bytes_;
  std::vector<float> widened_;
};

inline constexpr std::int64_t kSmallBytes = 16 << 10;
inline constexpr std::int64_t kSegmentBytes = 1 << 20;
inline constexpr std::int64_t kInlineBytes = 992;

// These work in place on `data`, like the functions of Communicator of the same names.
void run_all_reduce(Exchange& exchange, Scratch& scratch, View data, ReduceOp op);
void run_reduce_scatter(Exchange& exchange, Scratch& scratch, View data, ReduceOp op);
void run_all_gather(Exchange& exchange, Scratch& scratch, View data);
void run_all_to_all(Exchange& exchange, Scratch& scratch, const AllToAll& blocks);
void run_broadcast(Exchange& exchange, Scratch& scratch, View data, int root);
void run_barrier(Exchange& exchange, Scratch& scratch);
// These start the transfers; the operation ends when they have finished.
void run_send(Exchange& exchange, ConstView data, int to, int tag);
void run_recv(Exchange& exchange, View data, int from, int tag);

}  // namespace trireme
