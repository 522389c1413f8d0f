// Operations on up to kSmallBytes: every message is the label (greeting.h) and data behind it, so
// that they take no more messages than without. They work in the scratch memory and touch the
// caller's buffer last, when this rank has heard from all that its result depends on. With n ranks
// and S bytes each rank sends and receives:
//   all_reduce      n a power of two: recursive doubling, log2(n) messages of S bytes;
//                   else up the tree to rank 0 and down again, up to 2 ceil(log2(n)) of S bytes
//   reduce_scatter  as all_reduce
//   all_gather      dissemination (Bruck, Ho, Kipnis, Upfal, Weathersby, 1997): ceil(log2(n))
//                   messages, S (n-1)/n bytes
//   broadcast       dissemination: ceil(log2(n)) messages, one of them at most of S bytes to send
//                   and one to receive in each step
// Whichever operation a rank runs, it hears from the ranks that meet it in the others': where one
// rank of a group runs another operation than all others do, some rank learns it at once (all
// groups up to 32 ranks were enumerated).
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// In place on `data`, of up to kSmallBytes, as the functions of Communicator of the same names.
void small_all_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
void small_reduce_scatter(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
void small_all_gather(Exchange& exchange, Scratch& scratch, const View& data);
void small_broadcast(Exchange& exchange, Scratch& scratch, const View& data, int root);

}  // namespace trireme
