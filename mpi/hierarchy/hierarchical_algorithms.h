// These collective operations work inside hosts first. With h hosts of k ranks and S bytes, where
// the placement of ranks is regular (host_layout.h):
//
//   all_reduce      reduce-scatter in the host (S), all-reduce of this rank's k-th part with the
//                   ranks of the same local number on other hosts, all k parts at once
//                   (2 S/k (h-1)/h per rank, so 2 S (h-1)/h per host, which is the minimum for any
//                   algorithm), all-gather in the host (S); small ones: all-reduce of all data in
//                   the host, then across hosts
//   reduce_scatter  the first half of it: in the host, for the blocks of each host, then across
//   all_gather      across hosts, then in the host
//   broadcast       across hosts from the root's host, then in each host
//   barrier         in the host, then across hosts
//
// All of them except the barrier and small all_reduces start with a greeting over the whole group
// (greeting.h), so that no data is touched unless all ranks run the same operation.
//
// all_to_all, reduce_scatter of bf16, and every sum that would not keep the tree order use plain
// transfers. Thread rule: algorithms.h.
#pragma once

#include "mpi/collective/algorithms.h"
#include "mpi/hierarchy/hierarchical_transport.h"

namespace trireme {

// The transport outlives the algorithms.
std::unique_ptr<Algorithms> make_hierarchical_algorithms(HierarchicalTransport& transport);

}  // namespace trireme
