#include "src/parallel/tensor_ranks.h"

#include <utility>

namespace trireme {

// An error passes through: nobody will wait for what is under way, and its buffers go away.
TensorRanks::~TensorRanks() {
  for (Pending& pending : started_) {
    pending.abandon();
  }
}

void TensorRanks::start_sum(View data) { started_.push_back(tp_.all_reduce(data, ReduceOp::sum)); }

void TensorRanks::start_scatter_sum(View data) {
  started_.push_back(tp_.reduce_scatter(data, ReduceOp::sum));
}

void TensorRanks::finish() {
  const Stopwatch watch;
  const SpanTimer span(started_.empty() ? nullptr : spans_, SpanKind::tensor, "tensor-parallel");
  for (Pending& pending : started_) {
    pending.wait();
  }
  started_.clear();
  waited_seconds_ += watch.seconds();
}

void TensorRanks::gather(View data) {
  started_.push_back(tp_.all_gather(data));
  finish();
}

double TensorRanks::take_waited_seconds() { return std::exchange(waited_seconds_, 0.0); }

}  // namespace trireme
