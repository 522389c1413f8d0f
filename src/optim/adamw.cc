#include "src/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "src/base/error.h"

namespace trireme {

void AdamWOptions::validate() const {
  const auto is_beta = [](float beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(beta1) || !is_beta(beta2)) {
    throw ConfigError(
        fmt::format("optimizer.betas are {} and {}: 0 <= beta < 1 for each", beta1, beta2));
  }
  if (!(epsilon > 0) || !std::isfinite(epsilon)) {
    throw ConfigError(fmt::format("optimizer.eps is {}: it has to be above 0", epsilon));
  }
  if (!(weight_decay >= 0) || !std::isfinite(weight_decay)) {
    throw ConfigError(
        fmt::format("optimizer.weight_decay is {}: it has to be 0 or more", weight_decay));
  }
}

AdamWOptimizer::AdamWOptimizer(ParameterStore& store, const AdamWOptions& options)
    : store_(store),
      options_(options),
      m_(store.pool(), {store.flat_elements()}, DType::f32),
      v_(store.pool(), {store.flat_elements()}, DType::f32) {
  for (const Tensor& state : {m_, v_}) {
    auto* x = as<float>(state.view());
    std::fill(x, x + state.elements(), 0.0F);
  }
  for (ParameterId id = 0; id < store.count(); ++id) {
    const std::int64_t end = id + 1 < store.count() ? store[id + 1].offset : store.flat_elements();
    if (ranges_.empty() || ranges_.back().decays != store[id].decays) {
      ranges_.push_back({store[id].offset, end, store[id].decays});
    }
    ranges_.back().end = end;
  }
}

void AdamWOptimizer::step(const ConstView& gradients, const AdamWUpdate& update,
                          const Kernels& kernels, Stream& stream) {
  step_range(gradients, 0, store_.flat_elements(), update, kernels, stream);
}

void AdamWOptimizer::step_range(const ConstView& gradients, std::int64_t first, std::int64_t count,
                                const AdamWUpdate& update, const Kernels& kernels, Stream& stream) {
  check(gradients.count == store_.flat_elements(), "gradients are laid out like the store");
  AdamW call;
  call.step = update.step;
  call.lr = update.lr;
  call.beta1 = options_.beta1;
  call.beta2 = options_.beta2;
  call.epsilon = options_.epsilon;
  call.gradient_scale = update.gradient_scale;
  for (const DecayRange& range : ranges_) {
    const std::int64_t from = std::max(range.first, first);
    const std::int64_t n = std::min(range.end, first + count) - from;
    if (n <= 0) {
      continue;
    }
    call.value = store_.values().slice(from, n);
    call.m = m().slice(from, n);
    call.v = v().slice(from, n);
    call.gradient = gradients.slice(from, n);
    if (store_.compute_dtype() != DType::f32) {
      call.compute = store_.computes().slice(from, n);
    }
    call.weight_decay = range.decays ? options_.weight_decay : 0;
    kernels.adamw(stream, call);
  }
}

}  // namespace trireme
