#include "src/train/numerics/kernel_shapes.h"

#include "src/nn/model_slice.h"
#include "src/train/run/run_config.h"

namespace trireme {

KernelShapes kernel_shapes(const RunConfig& config, int tp) {
  const ModelConfig& model = config.model;
  const TensorShare share = tensor_share(model, 0, tp);
  KernelShapes shapes;
  shapes.dtype = config.compute_dtype();
  shapes.batch = config.train.micro_batch;
  shapes.time = config.data.sequence;
  shapes.channels = model.hidden;
  shapes.heads = share.heads.count;
  shapes.kv_heads = share.kv_heads.count;
  shapes.head_dim = model.head_dim;
  shapes.ffn = share.ffn.count;
  shapes.vocabulary = share.vocabulary.count;
  shapes.shares_vocabulary = tp > 1;
  shapes.llama = model.family == Family::llama;
  shapes.alibi = model.alibi;
  shapes.swiglu = model.swiglu;
  shapes.scaled = model.embedding_scale != 1 || model.logit_scale != 1;
  shapes.attention_scale = static_cast<float>(model.attention_scale);
  shapes.dropout = static_cast<float>(model.dropout);
  shapes.attention_dropout = static_cast<float>(model.attention_dropout);
  shapes.loss_terms = {config.train.label_smoothing, config.train.z_loss};
  shapes.temperature = config.distill.is_on() ? config.distill.temperature : 0;
  shapes.sgd = config.optimizer.options().kind == OptimizerKind::sgd;
  shapes.fp8 = config.train.uses_fp8();
  shapes.by_cudnn = config.train.attends_by_cudnn();
  shapes.averages = config.optimizer.ema > 0;
  shapes.keeps_zeros = config.optimizer.keep_zeros;
  return shapes;
}

}  // namespace trireme
