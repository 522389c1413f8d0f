#include "src/parallel/tensor_ranks.h"

#include <utility>

namespace trireme {

// If an error passes through, the operations in flight are abandoned, and their buffers are freed.
TensorRanks::~TensorRanks() {
  for (Pending& pending : under_way_) {
    pending.abandon();
  }
}

TensorGroup::Exchange TensorRanks::add(Pending pending) {
  under_way_.push_back(std::move(pending));
  return ++started_;
}

TensorGroup::Exchange TensorRanks::start_sum(View data) {
  return add(tp_.all_reduce(data, ReduceOp::sum, &context_.stream()));
}

TensorGroup::Exchange TensorRanks::start_scatter_sum(View data) {
  return add(tp_.reduce_scatter(data, ReduceOp::sum, &context_.stream()));
}

TensorGroup::Exchange TensorRanks::start_gather(View data) {
  return add(tp_.all_gather(data, &context_.stream()));
}

void TensorRanks::finish(Exchange exchange) {
  const auto ended = [this] { return started_ - static_cast<Exchange>(under_way_.size()); };
  if (exchange <= ended()) {
    return;
  }
  const StreamTimer timer(context_.stream(), waited_);
  const SpanTimer span(spans_, SpanKind::tensor, "tensor-parallel");
  while (ended() < exchange) {
    under_way_.front().wait(context_.stream());
    under_way_.pop_front();
  }
}

}  // namespace trireme
