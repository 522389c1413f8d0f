#include "src/nn/model.h"

#include <utility>

#include "src/base/error.h"
#include "src/nn/device_tokens.h"
#include "src/nn/teaching.h"

namespace trireme {

Model::Model(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
    : config_(config), slice_(slice), parts_(build_parts(config_, slice_, store)) {}

namespace {

// Keeps the parameters of a part in memory for its lifetime, and prefetches those of the next part.
class InMemory {
 public:
  InMemory(const Run& run, const PartParameters& part, const PartParameters* next = nullptr)
      : residence_(part.first < part.end ? run.residence : nullptr), part_(part) {
    if (residence_ != nullptr) {
      residence_->need(part.first, part.end);
    }
    if (run.residence != nullptr && next != nullptr && next->first < next->end) {
      run.residence->prefetch(next->first, next->end);
    }
  }
  ~InMemory() {
    if (residence_ != nullptr) {
      residence_->release(part_.first, part_.end);
    }
  }
  InMemory(const InMemory&) = delete;
  InMemory& operator=(const InMemory&) = delete;

 private:
  ParameterResidence* residence_;
  PartParameters part_;
};

}  // namespace

std::vector<ParameterId> Model::parameter_borders() const {
  std::vector<ParameterId> borders;
  for (const PartParameters& part : parts_.layer_parameters) {
    borders.push_back(part.first);
  }
  if (parts_.head) {
    borders.push_back(parts_.head_parameters.first);
  }
  return borders;
}

void Model::check_context(const MicroBatch& micro_batch) const {
  if (micro_batch.time > config_.context) {
    throw ConfigError(fmt::format(
        "sequences of {} tokens are longer than the model's context of {}: use shorter ones",
        micro_batch.time, config_.context));
  }
}

namespace {

// Returns the stream as one tensor, rounded as the norm that reads it next would round it.
Tensor summed(Residual stream, Run& run) {
  if (stream.delta.empty()) {
    return stream.x;
  }
  run.kernels().add(run.stream(), stream.delta.view(), stream.x.view());
  return stream.delta;
}

}  // namespace

Residual Model::stream_of(const MicroBatch& micro_batch, Tensor input, Saved& saved,
                          Run& run) const {
  check_context(micro_batch);
  run.batch = micro_batch.batch;
  run.time = micro_batch.time;
  run.documents = micro_batch.documents;
  check(parts_.embedding.has_value() == input.empty(),
        "a slice takes the stream of the one before");
  Residual stream{std::move(input), {}};
  if (parts_.embedding) {
    check(micro_batch.ids.count == micro_batch.batch * micro_batch.time, "ids are [B,T]");
    const InMemory part(run, parts_.embedding_parameters, &parts_.layer_parameters.front());
    stream = parts_.embedding->forward(micro_batch, run);
  }
  const std::size_t count = parts_.layers.size();
  Saved nothing = Saved::nothing();
  for (std::size_t i = 0; i < count; ++i) {
    const PartParameters* const next =
        i + 1 < count ? &parts_.layer_parameters[i + 1] : &parts_.head_parameters;
    const InMemory part(run, parts_.layer_parameters[i], next);
    Saved& kept = i < parts_.still_layers ? nothing : saved;
    stream = parts_.layers[i]->forward(std::move(stream), kept, run);
  }
  return stream;
}

Tensor Model::forward(const MicroBatch& micro_batch, Tensor input, Saved& saved, Run& run) const {
  Residual stream = stream_of(micro_batch, std::move(input), saved, run);
  if (!parts_.head) {
    return summed(std::move(stream), run);
  }
  saved.push(stream.x);
  saved.push(stream.delta);
  return {};
}

// Runs a whole model forward up to what its output matrix multiplies, and returns that: T [B,T,C].
Tensor Model::rows_of_head(const MicroBatch& micro_batch, Run& run) const {
  Saved nothing = Saved::nothing();
  Residual stream = stream_of(micro_batch, {}, nothing, run);
  return parts_.head->normalized(stream, run).y;
}

Tensor Model::head_backward(const MicroBatch& micro_batch, float gradient_scale, Saved& saved,
                            Run& run) const {
  Residual stream;
  stream.delta = saved.pop();
  stream.x = saved.pop();
  const InMemory tied(run, parts_.head->tied ? parts_.embedding_parameters : PartParameters{});
  const bool goes_on = parts_.still_layers < parts_.layers.size();
  const InMemory part(run, parts_.head_parameters,
                      goes_on ? &parts_.layer_parameters.back() : nullptr);
  Run plain = run;
  plain.fp8 = nullptr;
  if (run.teaching == nullptr) {
    return parts_.head->forward_backward(std::move(stream), micro_batch.targets, gradient_scale,
                                         plain);
  }
  const Teaching& teaching = *run.teaching;
  Run frozen{.context = run.context, .parameters = teaching.parameters};
  const Head::Lesson lesson{*teaching.teacher.parts_.head,
                            teaching.teacher.rows_of_head(micro_batch, frozen), frozen,
                            teaching.weight, teaching.temperature};
  return parts_.head->forward_backward(std::move(stream), micro_batch.targets, gradient_scale,
                                       plain, &lesson);
}

Tensor Model::backward(const MicroBatch& micro_batch, Tensor d, float gradient_scale, Saved& saved,
                       Run& run) const {
  check(parts_.head.has_value() == d.empty(), "a slice takes the gradient of the one behind");
  run.batch = micro_batch.batch;
  run.time = micro_batch.time;
  run.documents = micro_batch.documents;
  // Ranks that share the rows exchange them between branches; the gradients of weights are computed
  // during these exchanges.
  WeightGradients waiting;
  run.waiting = run.shares_rows() && run.later == nullptr ? &waiting : nullptr;
  if (parts_.head) {
    d = head_backward(micro_batch, gradient_scale, saved, run);
  }
  const std::size_t still = parts_.still_layers;
  for (std::size_t i = parts_.layers.size(); i-- > still;) {
    const PartParameters* const next = i > still ? &parts_.layer_parameters[i - 1] : nullptr;
    const InMemory part(run, parts_.layer_parameters[i], next);
    d = parts_.layers[i]->backward(std::move(d), saved, run);
  }
  check(saved.empty(), "backward pops all that forward pushed");
  if (parts_.embedding && parts_.embedding->is_frozen(run)) {
    d = {};
  } else if (parts_.embedding) {
    parts_.embedding->backward_sum(d, run);
    const GatheredRows rows(d, run);
    parts_.embedding->backward_positions(micro_batch, rows, run);
    if (!parts_.embedding_is_copy) {
      const bool joins_head = parts_.head && parts_.head->tied;
      parts_.embedding->backward_tokens(micro_batch, rows, !joins_head, run);
      d = {};
    }
  }
  run.work_off();
  run.waiting = nullptr;
  return d;
}

ParameterId Model::tied_matrix() const {
  check(is_tied_first() || is_tied_last(), "the slice has one end of a tied matrix");
  return is_tied_first() ? parts_.embedding->token : parts_.tied_gradient->token;
}

void Model::add_tied_gradient(const MicroBatch& micro_batch, const Tensor& d, Run& run) const {
  check(is_tied_last(), "the output matrix is the embedding of another slice");
  run.batch = micro_batch.batch;
  run.time = micro_batch.time;
  parts_.tied_gradient->backward_tokens(micro_batch, GatheredRows(d, run), false, run);
}

Tensor Model::evaluate(const MicroBatch& micro_batch, Tensor input, Run& run) const {
  Saved nothing = Saved::nothing();
  Residual stream = stream_of(micro_batch, std::move(input), nothing, run);
  if (!parts_.head) {
    return summed(std::move(stream), run);
  }
  const InMemory tied(run, parts_.head->tied ? parts_.embedding_parameters : PartParameters{});
  const InMemory part(run, parts_.head_parameters);
  parts_.head->loss(std::move(stream), micro_batch.targets, run);
  return {};
}

namespace {

// Runs `pass`, which writes a loss to run.loss, and returns that loss.
double loss_of(Run& run, const std::function<void()>& pass) {
  const Tensor loss(run.context.state(), {1}, DType::f64);
  const View before = std::exchange(run.loss, loss.view());
  pass();
  run.loss = before;
  return run.context.read<double>(loss.view()).front();
}

}  // namespace

double Model::forward_backward(const MicroBatch& micro_batch, float gradient_scale,
                               Run& run) const {
  return loss_of(run, [&] {
    Saved saved;
    forward(micro_batch, {}, saved, run);
    backward(micro_batch, {}, gradient_scale, saved, run);
  });
}

double Model::evaluate(const MicroBatch& micro_batch, Run& run) const {
  return loss_of(run, [&] { evaluate(micro_batch, {}, run); });
}

Tensor Model::decode(const ConstView& ids, KeyValueCache& cache, Run& run,
                     std::int64_t rows) const {
  check(rows >= 1 && rows <= ids.count, "logits are those after some of the new tokens");
  if (ids.count < 1 || cache.length() + ids.count > cache.capacity()) {
    throw ConfigError(
        fmt::format("{} tokens do not fit after the {} in the cache, which has room for {}",
                    ids.count, cache.length(), cache.capacity()));
  }
  Run decoding = run;
  decoding.training = false;
  decoding.cache = &cache;
  const DeviceTokens tokens(run.context, {1, ids.count, ids, {}}, config_.vocab);
  Saved nothing = Saved::nothing();
  Tensor logits = parts_.head->last_logits(stream_of(tokens.micro_batch(), {}, nothing, decoding),
                                           rows, decoding);
  cache.advance(ids.count);
  return logits;
}

}  // namespace trireme
