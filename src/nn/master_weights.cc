#include "src/nn/master_weights.h"

#include <algorithm>

#include "src/nn/initial_values.h"

namespace trireme {

MasterWeights::MasterWeights(const ParameterStore& store, std::vector<HeldRange> held)
    : store_(store), held_(std::move(held)) {
  std::int64_t at = 0;
  for (const HeldRange& range : held_) {
    starts_.push_back(at);
    at += range.working_copies.count;
  }
  if (store.compute_dtype() != DType::f32) {
    own_ = Tensor(store.context().state(), {at}, DType::f32);
    store.context().stream().clear(own_.view());
  }
}

std::int64_t MasterWeights::elements() const {
  return held_.empty() ? 0 : starts_.back() + held_.back().working_copies.count;
}

View MasterWeights::values(int range) const {
  const View& working_copies = held(range).working_copies;
  return own_.empty()
             ? working_copies
             : own_.view().slice(starts_[static_cast<std::size_t>(range)], working_copies.count);
}

View MasterWeights::value(ParameterId id) const {
  const Parameter& parameter = store_[id];
  for (int range = 0; range < ranges(); ++range) {
    const std::int64_t at = parameter.offset - held(range).first;
    if (at >= 0 && at + parameter.elements() <= held(range).working_copies.count) {
      return values(range).slice(at, parameter.elements());
    }
  }
  check(false, "a parameter is held whole by one range");
  return {};
}

void MasterWeights::initialize(std::uint64_t seed) {
  for (int range = 0; range < ranges(); ++range) {
    const std::int64_t begin = held(range).first;
    const std::int64_t end = begin + held(range).working_copies.count;
    for (const Parameter& parameter : store_.all()) {
      const std::int64_t from = std::max(begin, parameter.offset);
      const std::int64_t to = std::min(end, parameter.offset + parameter.elements());
      if (from < to) {
        set_initial_values(parameter, seed, from - parameter.offset,
                           values(range).slice(from - begin, to - from), store_.context());
      }
    }
  }
  refresh_working_copies();
}

void MasterWeights::refresh_working_copies() {
  if (own_.empty()) {
    return;
  }
  for (int range = 0; range < ranges(); ++range) {
    DeviceContext& context = store_.context();
    context.kernels().cast(context.stream(), held(range).working_copies, values(range));
  }
}

}  // namespace trireme
