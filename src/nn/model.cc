#include "src/nn/model.h"

#include "src/base/error.h"

namespace trireme {

Model::Model(const ModelConfig& config, ParameterStore& store)
    : config_(config),
      parts_(config.family == Family::gpt2 ? build_gpt2(config, store)
                                           : build_llama(config, store)) {}

// An id beyond the vocabulary would read beyond the embedding.
void Model::check_ids(const ConstView& ids) const {
  const auto* id = as<std::int32_t>(ids);
  for (std::int64_t i = 0; i < ids.count; ++i) {
    if (id[i] < 0 || id[i] >= config_.vocab) {
      throw DataError(fmt::format(
          "token {} of the micro-batch is {}, but model.vocab is {}: the data was packed with a "
          "larger vocabulary than the model has",
          i, id[i], config_.vocab));
    }
  }
}

void Model::check_context(const MicroBatch& micro_batch) const {
  if (micro_batch.time > config_.context) {
    throw ConfigError(fmt::format(
        "sequences of {} tokens are longer than the model's context of {}: take shorter ones",
        micro_batch.time, config_.context));
  }
}

Residual Model::forward(const MicroBatch& micro_batch, Saved& saved, Run& run) const {
  check(micro_batch.ids.count == micro_batch.batch * micro_batch.time, "ids are [B,T]");
  check_ids(micro_batch.ids);
  Residual stream = parts_.embedding.forward(micro_batch, run);
  for (const auto& layer : parts_.layers) {
    stream = layer->forward(std::move(stream), saved, run);
  }
  return stream;
}

double Model::forward_backward(const MicroBatch& micro_batch, float gradient_scale,
                               Run& run) const {
  check_context(micro_batch);
  check_ids(micro_batch.targets);
  Saved saved;
  Head::Result head = parts_.head.forward_backward(forward(micro_batch, saved, run),
                                                   micro_batch.targets, gradient_scale, run);
  for (auto layer = parts_.layers.rbegin(); layer != parts_.layers.rend(); ++layer) {
    (*layer)->backward(head.d, saved, run);
  }
  parts_.embedding.backward(micro_batch, head.d, run);
  check(saved.empty(), "backward pops all that forward pushed");
  return head.loss;
}

double Model::evaluate(const MicroBatch& micro_batch, Run& run) const {
  check_context(micro_batch);
  check_ids(micro_batch.targets);
  Saved nothing = Saved::nothing();
  return parts_.head.loss(forward(micro_batch, nothing, run), micro_batch.targets, run);
}

Tensor Model::decode(const ConstView& ids, KeyValueCache& cache, Run& run) const {
  if (ids.count < 1 || cache.length() + ids.count > cache.capacity()) {
    throw ConfigError(
        fmt::format("{} tokens don't fit behind the {} that are held: there is room for {} in all",
                    ids.count, cache.length(), cache.capacity()));
  }
  Run decoding = run;
  decoding.training = false;
  decoding.cache = &cache;
  MicroBatch tokens;
  tokens.batch = 1;
  tokens.time = ids.count;
  tokens.ids = ids;
  Saved nothing = Saved::nothing();
  Tensor logits = parts_.head.last_logits(forward(tokens, nothing, decoding), decoding);
  cache.advance(ids.count);
  return logits;
}

}  // namespace trireme
