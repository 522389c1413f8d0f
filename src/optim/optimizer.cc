#include "src/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/optim/muon.h"

namespace trireme {

OptimizerKind parse_optimizer(std::string_view name) {
  if (name == "adamw") {
    return OptimizerKind::adamw;
  }
  if (name == "sgd") {
    return OptimizerKind::sgd;
  }
  if (name == "muon") {
    return OptimizerKind::muon;
  }
  throw ConfigError(fmt::format("optimizer.name is '{}': it must be adamw, sgd or muon", name));
}

void OptimizerOptions::validate() const {
  const auto is_rate = [](float beta) { return beta >= 0 && beta < 1; };
  if (!is_rate(beta1) || !is_rate(beta2)) {
    throw ConfigError(fmt::format(
        "optimizer.betas are {} and {}: each must be at least 0 and below 1", beta1, beta2));
  }
  if (!(epsilon > 0) || !std::isfinite(epsilon)) {
    throw ConfigError(fmt::format("optimizer.eps is {}: it must be above 0", epsilon));
  }
  if (!(weight_decay >= 0) || !std::isfinite(weight_decay)) {
    throw ConfigError(
        fmt::format("optimizer.weight_decay is {}: it must be 0 or more", weight_decay));
  }
  if (!is_rate(momentum)) {
    throw ConfigError(
        fmt::format("optimizer.momentum is {}: it must be at least 0 and below 1", momentum));
  }
  if (!is_rate(ema)) {
    throw ConfigError(fmt::format("optimizer.ema is {}: it must be at least 0 and below 1", ema));
  }
  if (nesterov && momentum == 0) {
    throw ConfigError("optimizer.nesterov requires optimizer.momentum to be above 0");
  }
}

std::int64_t OptimizerOptions::workspace(const ParameterStore& store) const {
  std::int64_t most = 0;
  for (const Parameter& parameter : store.all()) {
    if (kind == OptimizerKind::muon && parameter.hidden) {
      most = std::max(most, muon_workspace(parameter.shape()[0], parameter.shape()[1]));
    }
  }
  return most;
}

namespace {

// Returns, for each i up to the number of parameters, how many elements Muon's matrices have among
// the parameters before i.
std::vector<std::int64_t> sums_of_matrices(const ParameterStore& store) {
  std::vector<std::int64_t> sums = {0};
  for (const Parameter& parameter : store.all()) {
    sums.push_back(sums.back() + (parameter.hidden ? parameter.elements() : 0));
  }
  return sums;
}

}  // namespace

std::int64_t OptimizerOptions::state_elements(const ParameterStore& store,
                                              std::int64_t held) const {
  return states() * held - (kind == OptimizerKind::muon ? sums_of_matrices(store).back() : 0);
}

Optimizer::Optimizer(MasterWeights& masters, const OptimizerOptions& options)
    : masters_(masters), options_(options) {
  if (options.kind == OptimizerKind::muon) {
    matrices_before_ = sums_of_matrices(masters.store());
  }
  for (int state = 0; state < options.states(); ++state) {
    std::int64_t at = 0;
    starts_.emplace_back();
    for (int range = 0; range < masters.ranges(); ++range) {
      const std::int64_t count = masters.held(range).working_copies.count;
      starts_.back().push_back(at);
      at += count - unused_before(state, range, count);
    }
    DeviceContext& context = masters.store().context();
    states_.emplace_back(context.state(), Shape{at}, DType::f32);
    context.stream().clear(states_.back().view());
  }
  if (const std::int64_t elements = options.workspace(masters.store()); elements > 0) {
    workspace_ = Tensor(masters.store().context().state(), {elements}, DType::f32);
  }
}

std::string_view Optimizer::state_name(int state, const Parameter& parameter) const {
  if (options_.ema > 0 && state == options_.states() - 1) {
    return kAverageName;
  }
  if (options_.kind == OptimizerKind::sgd) {
    return "optimizer.momentum";
  }
  if (options_.kind == OptimizerKind::muon && parameter.hidden) {
    return state == 0 ? "optimizer.momentum" : "";
  }
  return state == 0 ? "optimizer.m" : "optimizer.v";
}

// Returns how many of the range's first elements have no value in this state: Muon's matrices have
// no second moment.
std::int64_t Optimizer::unused_before(int state, int range, std::int64_t first) const {
  if (options_.kind != OptimizerKind::muon || state != 1) {
    return 0;
  }
  const auto& parameters = masters_.store().all();
  const auto matrices_before = [&](std::int64_t flat) {
    const auto next = std::partition_point(parameters.begin(), parameters.end(),
                                           [flat](const Parameter& p) { return p.offset < flat; });
    return matrices_before_[static_cast<std::size_t>(next - parameters.begin())];
  };
  const std::int64_t begin = masters_.held(range).first;
  return matrices_before(begin + first) - matrices_before(begin);
}

View Optimizer::state(int state, int range, std::int64_t first, std::int64_t count) const {
  const std::int64_t unused = unused_before(state, range, first);
  check(unused_before(state, range, first + count) == unused, "every element has this state");
  const auto s = static_cast<std::size_t>(state);
  return states_[s].view().slice(starts_[s][static_cast<std::size_t>(range)] + first - unused,
                                 count);
}

std::int64_t Optimizer::state_elements() const {
  std::int64_t elements = 0;
  for (const Tensor& state : states_) {
    elements += state.elements();
  }
  return elements;
}

void Optimizer::start_average() {
  for (int range = 0; options_.ema > 0 && range < masters_.ranges(); ++range) {
    masters_.store().context().stream().copy(state(options_.states() - 1, range),
                                             masters_.values(range));
  }
}

namespace {

// Returns the first parameter after `id` that a kernel call for `id` can't include, because Muon
// updates it.
ParameterId end_of_call(const ParameterStore& store, ParameterId id, bool muon) {
  do {
    ++id;
  } while (id < store.count() && !(muon && store[id].hidden));
  return id;
}

// Returns the turns of the decay (see AdamW::turns) among n elements, numbered from the flat
// element `first` on, which belong to the parameters from `id` on.
std::vector<std::int64_t> turns_of_decay(const ParameterStore& store, ParameterId id,
                                         std::int64_t first, std::int64_t n) {
  std::vector<std::int64_t> turns;
  bool decays = true;
  for (; id < store.count() && store[id].offset - first < n; ++id) {
    if (store[id].decays == decays) {
      continue;
    }
    decays = store[id].decays;
    const std::int64_t at = std::max<std::int64_t>(store[id].offset - first, 0);
    if (!turns.empty() && turns.back() == at) {
      turns.pop_back();  // two turns before the first element cancel each other
    } else {
      turns.push_back(at);
    }
  }
  return turns;
}

bool is_matrix(const Parameter& parameter) { return parameter.shape().rank() == 2; }

// Stretch is the elements that one kernel call updates.
struct Stretch {
  View value;
  ConstView gradient;
  View compute;  // empty if the working copies are the master weights
  std::vector<std::int64_t> turns;
};

void run_adamw(const Stretch& at, const View& m, const View& v, const OptimizerOptions& options,
               const OptimizerUpdate& update, const Kernels& kernels, Stream& stream) {
  AdamW call;
  call.value = at.value;
  call.m = m;
  call.v = v;
  call.gradient = at.gradient;
  call.compute = at.compute;
  call.step = update.step;
  call.lr = update.lr;
  call.beta1 = options.beta1;
  call.beta2 = options.beta2;
  call.epsilon = options.epsilon;
  call.weight_decay = options.weight_decay;
  call.turns = at.turns;
  call.gradient_scale = update.gradient_scale;
  kernels.adamw(stream, call);
}

void run_sgd(const Stretch& at, const View& buffer, const OptimizerOptions& options,
             const OptimizerUpdate& update, const Kernels& kernels, Stream& stream) {
  Sgd call;
  call.value = at.value;
  call.buffer = buffer;
  call.gradient = at.gradient;
  call.compute = at.compute;
  call.lr = update.lr;
  call.momentum = options.momentum;
  call.nesterov = options.nesterov;
  call.weight_decay = options.weight_decay;
  call.turns = at.turns;
  call.gradient_scale = update.gradient_scale;
  kernels.sgd(stream, call);
}

}  // namespace

void Optimizer::keep_zeros(int range, const View& gradients) const {
  const ParameterStore& store = masters_.store();
  const std::int64_t begin = masters_.held(range).first;
  for (ParameterId id = 0; options_.keep_zeros && id < store.count(); ++id) {
    const Parameter& parameter = store[id];
    const std::int64_t from = std::max(parameter.offset - begin, std::int64_t{0});
    const std::int64_t end =
        std::min(parameter.offset + parameter.elements() - begin, gradients.count);
    if (is_matrix(parameter) && from < end) {
      store.context().kernels().zero_where_zero(store.context().stream(),
                                                gradients.slice(from, end - from),
                                                masters_.values(range).slice(from, end - from));
    }
  }
}

void Optimizer::step(int range, const ConstView& gradients, const OptimizerUpdate& update) {
  const ParameterStore& store = masters_.store();
  const Kernels& kernels = store.context().kernels();
  Stream& stream = store.context().stream();
  const HeldRange& held = masters_.held(range);
  check(gradients.count == held.working_copies.count, "gradients are laid out like their range");
  const bool muon = options_.kind == OptimizerKind::muon;
  for (ParameterId id = 0; id < store.count();) {
    if (muon && store[id].hidden) {
      step_of_muon(range, id++, gradients, update);
      continue;
    }
    const ParameterId first = id;
    const ParameterId next = end_of_call(store, id, muon);
    const std::int64_t end = next < store.count() ? store[next].offset : store.flat_elements();
    const std::int64_t from = std::max<std::int64_t>(store[id].offset - held.first, 0);
    const std::int64_t n = std::min(end - held.first, gradients.count) - from;
    id = next;
    if (n <= 0) {
      continue;
    }
    const bool narrow = store.compute_dtype() != DType::f32;
    const Stretch at{masters_.values(range).slice(from, n), gradients.slice(from, n),
                     narrow ? held.working_copies.slice(from, n) : View{},
                     turns_of_decay(store, first, held.first + from, n)};
    if (options_.kind != OptimizerKind::sgd) {
      run_adamw(at, state(0, range, from, n), state(1, range, from, n), options_, update, kernels,
                stream);
    } else {
      run_sgd(at, state(0, range, from, n), options_, update, kernels, stream);
    }
  }
  average(range, update);
}

void Optimizer::step_of_muon(int range, ParameterId id, const ConstView& gradients,
                             const OptimizerUpdate& update) {
  const Parameter& parameter = masters_.store()[id];
  const HeldRange& held = masters_.held(range);
  const std::int64_t from = parameter.offset - held.first;
  const std::int64_t n = parameter.elements();
  if (from >= gradients.count || from + n <= 0) {
    return;
  }
  check(from >= 0 && from + n <= gradients.count, "Muon's matrices are held whole");
  Muon call;
  call.rows = parameter.shape()[0];
  call.columns = parameter.shape()[1];
  call.value = masters_.values(range).slice(from, n);
  call.buffer = state(0, range, from, n);
  call.gradient = gradients.slice(from, n);
  call.workspace = workspace_.view();
  call.lr = update.lr;
  call.momentum = options_.momentum;
  call.nesterov = options_.nesterov;
  call.weight_decay = parameter.decays ? options_.weight_decay : 0;
  call.gradient_scale = update.gradient_scale;
  call.keep_zeros = options_.keep_zeros;
  DeviceContext& context = masters_.store().context();
  muon_step(call, context);
  if (masters_.store().compute_dtype() != DType::f32) {
    context.kernels().cast(context.stream(), held.working_copies.slice(from, n), call.value);
  }
}

void Optimizer::average(int range, const OptimizerUpdate& update) const {
  if (options_.ema > 0) {
    const auto t = static_cast<double>(update.step);
    const double decay = std::min(static_cast<double>(options_.ema), (1 + t) / (10 + t));
    DeviceContext& context = masters_.store().context();
    context.kernels().moving_average(
        context.stream(),
        {state(options_.states() - 1, range), masters_.values(range), static_cast<float>(decay)});
  }
}

}  // namespace trireme
