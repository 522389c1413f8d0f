#include "src/nn/shared_rows.h"

namespace trireme {
namespace {

// Returns this rank's block of rows.
View own_block(const Tensor& all, const Run& run) {
  const std::int64_t elements = all.elements() / run.group->size();
  return all.view().slice(run.group->rank() * elements, elements);
}

}  // namespace

GatheredRows::GatheredRows(Tensor own, const Run& run) : state_(std::make_shared<State>()) {
  state_->shape = {run.batch, run.time, own.shape()[2]};
  (run.shares_rows() ? state_->own : state_->all) = std::move(own);
}

void GatheredRows::start(Run& run) const {
  State& s = *state_;
  if (!s.all.empty()) {
    return;
  }
  s.all = Tensor(run.group->pool(), s.shape, s.own.dtype());
  run.kernels().cast(run.stream(), own_block(s.all, run), s.own.view());
  s.own = {};
  s.exchange = run.group->start_gather(s.all.view());
}

void GatheredRows::start_for_weights(Run& run) const {
  if (run.later == nullptr) {
    start(run);
  } else {
    run.later->emplace_back([rows = *this](Run& then) { rows.start(then); });
  }
}

Tensor GatheredRows::whole(Run& run) const {
  if (state_->all.empty()) {
    start(run);
    run.work_off();
  }
  if (state_->exchange != 0) {
    run.group->finish(state_->exchange);
  }
  return state_->all;
}

TensorGroup::Exchange start_row_sum(const Tensor& part, Run& run) {
  if (run.alone()) {
    return 0;
  }
  return run.shares_rows() ? run.group->start_scatter_sum(part.view())
                           : run.group->start_sum(part.view());
}

Tensor finish_row_sum(const Tensor& part, TensorGroup::Exchange sum, Run& run) {
  if (run.alone()) {
    return part;
  }
  // One weight gradient is left for the exchange that comes next, which gathers the rows that this
  // sum results in.
  run.work_off(1);
  run.group->finish(sum);
  if (!run.shares_rows()) {
    return part;
  }
  const View block = own_block(part, run);
  Tensor own(run.pool(), {1, block.count / part.shape()[2], part.shape()[2]}, part.dtype());
  run.kernels().cast(run.stream(), own.view(), block);
  return own;
}

}  // namespace trireme
