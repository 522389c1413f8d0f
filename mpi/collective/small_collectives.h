// Implements operations on up to kSmallBytes. Every message consists of the label (greeting.h) and
// data, so that the check of labels costs no extra messages. The operations work in scratch memory
// and write to the caller's buffer last, when this rank has heard from all ranks on which its
// result depends. With n ranks and S bytes each rank sends and receives:
//   all_reduce      n a power of two: recursive doubling, log2(n) messages of S bytes;
//                   other n: up the tree to rank 0 and down again, up to 2 ceil(log2(n)) messages
//                   of S bytes
//   reduce_scatter  as all_reduce
//   all_gather      dissemination (Bruck, Ho, Kipnis, Upfal, Weathersby, 1997): ceil(log2(n))
//                   messages, S (n-1)/n bytes
//   broadcast       dissemination: ceil(log2(n)) steps of one message each way; every rank but the
//                   root receives S bytes in one of them and labels in the others
// The operations' patterns of messages overlap such that, if one rank of a group runs another
// operation than all others, some rank finds it out at once (all groups of up to 32 ranks were
// enumerated). Called by the thread that drives the operation.
#pragma once

#include "mpi/collective/collectives.h"

namespace trireme {

// These work in place on `data`, which has up to kSmallBytes, like the functions of Communicator of
// the same names.
void small_all_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
void small_reduce_scatter(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op);
void small_all_gather(Exchange& exchange, Scratch& scratch, const View& data);
void small_broadcast(Exchange& exchange, Scratch& scratch, const View& data, int root);

}  // namespace trireme
