#include "src/nn/embedding.h"

#include "src/base/check.h"
#include "src/nn/key_value_cache.h"
#include "src/nn/residual_layer.h"

namespace trireme {

Residual Embedding::forward(const MicroBatch& micro_batch, Run& run) const {
  const ParameterStore& store = run.parameters;
  Tensor out(run.shared_pool(), {micro_batch.batch, micro_batch.time, channels},
             store.compute_dtype());
  EmbeddingForward call;
  call.batch = micro_batch.batch;
  call.time = micro_batch.time;
  call.channels = channels;
  call.first_position = run.cache == nullptr ? 0 : run.cache->length();
  call.out = out.view();
  call.ids = micro_batch.ids;
  call.token = store.compute(token);
  call.partial = !run.alone();
  call.first_id = vocabulary.first;
  if (position != kNoParameter) {
    check(micro_batch.documents == nullptr, "learned positions are those of whole samples");
    call.position = store.compute(position);
  }
  run.kernels().embedding_forward(run.stream(), call);
  // Each row is zero on all ranks except one, so that the sum is exact.
  out = sum_rows(out, run);
  if (scale != 1) {
    run.kernels().scale(run.stream(), out.view(), scale);
  }
  const ResidualDropout drop{dropout, 0};
  if (drops(drop, run)) {
    apply_dropout(drop, out, out, run);
  }
  return {out, {}};
}

namespace {

EmbeddingBackward arguments(const MicroBatch& micro_batch, const Tensor& d) {
  EmbeddingBackward call;
  call.batch = micro_batch.batch;
  call.time = micro_batch.time;
  call.channels = d.shape()[2];
  call.dout = d.view();
  call.ids = micro_batch.ids;
  return call;
}

}  // namespace

void Embedding::backward_sum(const Tensor& d, Run& run) const {
  const ResidualDropout drop{dropout, 0};
  if (drops(drop, run)) {
    apply_dropout(drop, d, d, run);
  }
  if (scale != 1) {
    run.kernels().scale(run.stream(), d.view(), scale);
  }
}

void Embedding::backward_positions(const MicroBatch& micro_batch, const GatheredRows& d,
                                   Run& run) const {
  if (position == kNoParameter || run.parameters[position].frozen) {
    return;
  }
  d.start_for_weights(run);
  run.weight_gradient([this, micro_batch, d](Run& then) {
    EmbeddingBackward call = arguments(micro_batch, d.whole(then));
    call.dposition = then.gradients->gradient(position);
    then.kernels().embedding_backward(then.stream(), call);
    then.gradients->ready(position);
  });
}

void Embedding::backward_tokens(const MicroBatch& micro_batch, const GatheredRows& d, bool first,
                                Run& run) const {
  if (run.parameters[token].frozen) {
    return;
  }
  d.start_for_weights(run);
  run.weight_gradient([this, micro_batch, d, first](Run& then) {
    EmbeddingBackward call = arguments(micro_batch, d.whole(then));
    call.dtoken = then.gradients->gradient(token);
    call.partial = !then.alone();
    call.first_id = vocabulary.first;
    if (first) {
      then.kernels().fill(then.stream(), call.dtoken, 0);
    }
    then.kernels().embedding_backward(then.stream(), call);
    then.gradients->ready(token);
  });
}

}  // namespace trireme
