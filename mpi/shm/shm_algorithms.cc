#include "mpi/shm/shm_algorithms.h"

#include "mpi/shm/movement.h"
#include "mpi/shm/reduction.h"

namespace trireme {
namespace {

class ShmAlgorithms : public Algorithms {
 public:
  explicit ShmAlgorithms(ShmGroup& group) : group_(group) {}
  void all_reduce(Exchange& exchange, View data, ReduceOp op) override {
    shm_all_reduce(group_, addresses_, exchange, data, data, op);
  }
  void all_reduce_into(Exchange& exchange, ConstView from, View into, ReduceOp op) override {
    shm_all_reduce(group_, addresses_, exchange, from, into, op);
  }
  void reduce_scatter(Exchange& exchange, View data, ReduceOp op) override {
    shm_reduce_scatter(group_, addresses_, exchange, data, op);
  }
  void all_gather(Exchange& exchange, View data) override {
    shm_all_gather(group_, exchange, data);
  }
  void all_to_all(Exchange& exchange, const AllToAll& blocks) override {
    shm_all_to_all(group_, exchange, blocks);
  }
  void broadcast(Exchange& exchange, View data, int root) override {
    shm_broadcast(group_, exchange, data, root);
  }
  void barrier(Exchange& exchange) override {
    group_.next_notice().source = kInPost;
    group_.post(exchange);
  }

 private:
  ShmGroup& group_;
  Addresses addresses_;
};

}  // namespace

std::unique_ptr<Algorithms> make_shm_algorithms(ShmGroup& group) {
  return std::make_unique<ShmAlgorithms>(group);
}

}  // namespace trireme
