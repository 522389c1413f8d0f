#include "src/nn/embedding.h"

#include "src/nn/key_value_cache.h"
#include "src/nn/residual_layer.h"

namespace trireme {

Residual Embedding::forward(const MicroBatch& micro_batch, Run& run) const {
  const ParameterStore& store = run.parameters;
  const Tensor out(run.pool, {micro_batch.batch, micro_batch.time, channels},
                   store.compute_dtype());
  EmbeddingForward call;
  call.batch = micro_batch.batch;
  call.time = micro_batch.time;
  call.channels = channels;
  call.first_position = run.cache == nullptr ? 0 : run.cache->length();
  call.out = out.view();
  call.ids = micro_batch.ids;
  call.token = store.compute(token);
  if (position != kNoParameter) {
    call.position = store.compute(position);
  }
  run.kernels.embedding_forward(run.stream, call);
  const ResidualDropout drop{dropout, 0};
  if (drops(drop, run)) {
    apply_dropout(drop, out, out, run);
  }
  return {out, {}};
}

void Embedding::backward(const MicroBatch& micro_batch, const Tensor& d, Run& run) const {
  const ParameterStore& store = run.parameters;
  const ResidualDropout drop{dropout, 0};
  if (drops(drop, run)) {
    apply_dropout(drop, d, d, run);
  }
  if (!tied) {
    run.kernels.fill(run.stream, store.gradient(token), 0);
  }
  EmbeddingBackward call;
  call.batch = micro_batch.batch;
  call.time = micro_batch.time;
  call.channels = channels;
  call.dout = d.view();
  call.ids = micro_batch.ids;
  call.dtoken = store.gradient(token);
  if (position != kNoParameter) {
    call.dposition = store.gradient(position);
  }
  run.kernels.embedding_backward(run.stream, call);
  if (run.gradient_ready) {
    if (position != kNoParameter) {
      run.gradient_ready(position);
    }
    run.gradient_ready(token);
  }
}

}  // namespace trireme
