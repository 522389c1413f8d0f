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

AdamWOptimizer::AdamWOptimizer(MasterWeights& masters, const AdamWOptions& options)
    : masters_(masters), options_(options) {
  std::int64_t at = 0;
  for (int range = 0; range < masters.ranges(); ++range) {
    starts_.push_back(at);
    at += masters.held(range).computes.count;
  }
  for (Tensor* state : {&m_, &v_}) {
    *state = Tensor(masters.store().pool(), {at}, DType::f32);
    std::fill_n(as<float>(state->view()), at, 0.0F);
  }
}

namespace {

// The first parameter behind `id` that decays where this one does not, or the other way round.
ParameterId end_of_alike(const ParameterStore& store, ParameterId id) {
  const bool decays = store[id].decays;
  while (id < store.count() && store[id].decays == decays) {
    ++id;
  }
  return id;
}

}  // namespace

void AdamWOptimizer::step(int range, const ConstView& gradients, const AdamWUpdate& update,
                          const Kernels& kernels, Stream& stream) {
  const ParameterStore& store = masters_.store();
  const HeldRange& held = masters_.held(range);
  check(gradients.count == held.computes.count, "gradients are laid out like their range");
  AdamW call;
  call.step = update.step;
  call.lr = update.lr;
  call.beta1 = options_.beta1;
  call.beta2 = options_.beta2;
  call.epsilon = options_.epsilon;
  call.gradient_scale = update.gradient_scale;
  for (ParameterId id = 0; id < store.count();) {
    const ParameterId next = end_of_alike(store, id);
    const std::int64_t end = next < store.count() ? store[next].offset : store.flat_elements();
    const std::int64_t from = std::max<std::int64_t>(store[id].offset - held.first, 0);
    const std::int64_t n = std::min(end - held.first, gradients.count) - from;
    call.weight_decay = store[id].decays ? options_.weight_decay : 0;
    id = next;
    if (n <= 0) {
      continue;
    }
    call.value = masters_.values(range).slice(from, n);
    call.m = m(range).slice(from, n);
    call.v = v(range).slice(from, n);
    call.gradient = gradients.slice(from, n);
    if (store.compute_dtype() != DType::f32) {
      call.compute = held.computes.slice(from, n);
    }
    kernels.adamw(stream, call);
  }
}

}  // namespace trireme
