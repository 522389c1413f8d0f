// Algorithms runs the collective operations of a group. A transport makes it for its group;
// whichever thread drives the group's OperationQueue uses it, one operation at a time. Each call
// works in place on `data` like the function of Communicator of the same name, unless its name says
// otherwise. It returns when the result is complete and no other rank reads this rank's buffers any
// more, except through transfers of the exchange; the operation ends when these have settled.
//
// Every implementation adds in tree order (communicator.h), unless the label of the operation says
// SumOrder::any.
#pragma once

#include <memory>
#include <span>

#include "mpi/collective/exchange.h"

namespace trireme {

// The buffers of an all_to_all hold the blocks to and from each rank, packed in rank order. Counts
// are in elements, one per rank.
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
  // Reduces from one buffer into another. The default copies, and then calls all_reduce in place.
  virtual void all_reduce_into(Exchange& exchange, ConstView from, View into, ReduceOp op);
  virtual void reduce_scatter(Exchange& exchange, View data, ReduceOp op) = 0;
  virtual void all_gather(Exchange& exchange, View data) = 0;
  virtual void all_to_all(Exchange& exchange, const AllToAll& blocks) = 0;
  virtual void broadcast(Exchange& exchange, View data, int root) = 0;
  virtual void barrier(Exchange& exchange) = 0;
};

// Returns the algorithms of collectives.h, which need only transfers and so work on any transport.
std::unique_ptr<Algorithms> make_transfer_algorithms();

}  // namespace trireme
