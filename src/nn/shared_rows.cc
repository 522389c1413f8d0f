#include "src/nn/shared_rows.h"

namespace trireme {
namespace {

// This rank's block of all rows.
View own_block(const Tensor& all, const Run& run) {
  const std::int64_t elements = all.elements() / run.group->size();
  return all.view().slice(run.group->rank() * elements, elements);
}

}  // namespace

Tensor gather_rows(const Tensor& own, Run& run) {
  if (!run.shares_rows()) {
    return own;
  }
  Tensor all(run.group->pool(), {run.batch, run.time, own.shape()[2]}, own.dtype());
  run.kernels.cast(run.stream, own_block(all, run), own.view());
  run.group->gather(all.view());
  return all;
}

void start_row_sum(const Tensor& part, Run& run) {
  if (run.shares_rows()) {
    run.group->start_scatter_sum(part.view());
  } else if (!run.alone()) {
    run.group->start_sum(part.view());
  }
}

Tensor finish_row_sum(const Tensor& part, Run& run) {
  if (run.alone()) {
    return part;
  }
  run.group->finish();
  if (!run.shares_rows()) {
    return part;
  }
  const View block = own_block(part, run);
  Tensor own(run.pool, {1, block.count / part.shape()[2], part.shape()[2]}, part.dtype());
  run.kernels.cast(run.stream, own.view(), block);
  return own;
}

}  // namespace trireme
