// Collective operations inside hosts first. With h hosts of k ranks and S bytes, where the ranks
// lie regularly (host_layout.h):
//
//   all_reduce      reduce-scatter in the host (S), all-reduce of this rank's k-th part with the
//   ranks
//                   of the same local number on other hosts, all k at once (2 S/k (h-1)/h a rank,
//                   so 2 S (h-1)/h a host: what any algorithm has to move), all-gather in the host
//                   (S); small ones: all-reduce in the host, then across, of all of it
//   reduce_scatter  the first half of it: in the host a block of every host, then across
//   all_gather      across, then in the host
//   broadcast       across from the root's host, then in each host
//   barrier         in the host, then across
//
// But for the barrier and small all_reduces all of them start with a greeting over the whole group
// (greeting.h), so that no data is touched unless all ranks run the same.
//
// all_to_all, and every sum where the tree order would not be kept, go over plain transfers.
#pragma once

#include "mpi/collective/algorithms.h"
#include "mpi/hierarchy/hierarchical_transport.h"

namespace trireme {

// The transport outlives them.
std::unique_ptr<Algorithms> make_hierarchical_algorithms(HierarchicalTransport& transport);

}  // namespace trireme
