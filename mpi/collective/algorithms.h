// Algorithms: how a group runs its collective operations. Made by a transport for its group; used
// by whichever thread drives the group's OperationQueue, one operation at a time. Each call works
// in place on `data` as the function of Communicator of the same name, unless its name says
// otherwise, and returns when the result
// is there and no buffer of this rank is read by others any more (transfers of the exchange may
// still be under way: the operation ends when they have settled).
//
// Every implementation adds in tree order (communicator.h), unless the group was made for
// SumOrder::any.
#pragma once

#include <memory>
#include <span>

#include "mpi/collective/exchange.h"

namespace trireme {

// Blocks for and from each rank, packed in rank order; counts in elements, one a rank.
struct AllToAll {
  ConstView send;
  std::span<const std::int64_t> send_counts;
  View recv;
  std::span<const std::int64_t> recv_counts;
};

class Algorithms {
 public:
  virtual ~Algorithms() = default;
  virtual void all_reduce(Exchange& exchange, View data, ReduceOp op) = 0;
  // From one buffer into another. As it stands here: a copy, then all_reduce in place.
  virtual void all_reduce_into(Exchange& exchange, ConstView from, View into, ReduceOp op);
  virtual void reduce_scatter(Exchange& exchange, View data, ReduceOp op) = 0;
  virtual void all_gather(Exchange& exchange, View data) = 0;
  virtual void all_to_all(Exchange& exchange, const AllToAll& blocks) = 0;
  virtual void broadcast(Exchange& exchange, View data, int root) = 0;
  virtual void barrier(Exchange& exchange) = 0;
};

// The algorithms of collectives.h, over nothing but transfers: for any transport.
std::unique_ptr<Algorithms> make_transfer_algorithms();

}  // namespace trireme
