#include "mpi/collective/algorithms.h"

#include "mpi/blocks.h"
#include "mpi/collective/collectives.h"

namespace trireme {
namespace {

class TransferAlgorithms : public Algorithms {
 public:
  void all_reduce(Exchange& exchange, View data, ReduceOp op) override {
    run_all_reduce(exchange, scratch_, data, op);
  }
  void reduce_scatter(Exchange& exchange, View data, ReduceOp op) override {
    run_reduce_scatter(exchange, scratch_, data, op);
  }
  void all_gather(Exchange& exchange, View data) override {
    run_all_gather(exchange, scratch_, data);
  }
  void all_to_all(Exchange& exchange, const AllToAll& blocks) override {
    run_all_to_all(exchange, scratch_, blocks);
  }
  void broadcast(Exchange& exchange, View data, int root) override {
    run_broadcast(exchange, scratch_, data, root);
  }
  void barrier(Exchange& exchange) override { run_barrier(exchange, scratch_); }

 private:
  Scratch scratch_;
};

}  // namespace

void Algorithms::all_reduce_into(Exchange& exchange, ConstView from, View into, ReduceOp op) {
  copy_block(from, into);
  all_reduce(exchange, into, op);
}

std::unique_ptr<Algorithms> make_transfer_algorithms() {
  return std::make_unique<TransferAlgorithms>();
}

}  // namespace trireme
