#include "src/nn/parameter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "src/base/digest.h"
#include "src/base/philox.h"
#include "src/kernels/kernels.h"

namespace trireme {
namespace {

// Shards are cut at multiples of it, so that the blocks of every sum stay whole.
constexpr std::int64_t kAlignment = kSumBlock;

// Elements [first, first + n) of a logical tensor, to x [n]. Two normal numbers from two uniform
// ones (Box and Muller, 1958), in double: the same on every machine whose libm rounds log, cos and
// sin alike, which checkpoints make moot after step 0.
void fill_normal(float* x, std::int64_t first, std::int64_t n, PhiloxKey key, float deviation) {
#pragma omp parallel for schedule(static)
  for (std::int64_t block = first / 4; block < (first + n + 3) / 4; ++block) {
    const PhiloxCounter bits = philox(
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, key);
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      const auto i = static_cast<std::size_t>(2 * pair);
      const double u = (bits[i] + 0.5) * 0x1p-32;
      const double angle = 2 * std::numbers::pi * (bits[i + 1] * 0x1p-32);
      const double radius = deviation * std::sqrt(-2 * std::log(u));
      const std::int64_t at = block * 4 + 2 * pair - first;
      if (at >= 0 && at < n) {
        x[at] = static_cast<float>(radius * std::cos(angle));
      }
      if (at + 1 >= 0 && at + 1 < n) {
        x[at + 1] = static_cast<float>(radius * std::sin(angle));
      }
    }
  }
}

void zero(const View& view) { std::memset(view.data, 0, static_cast<std::size_t>(view.bytes())); }

}  // namespace

ParameterId ParameterStore::add(Parameter parameter) {
  check(values_.empty(), "parameters are declared before they are allocated");
  check(!parameter.joined || !parameters_.empty(), "a joined parameter has one before it");
  parameter.offset =
      parameter.joined ? parameters_.back().offset + parameters_.back().elements() : flat_elements_;
  const std::int64_t end = parameter.offset + parameter.elements();
  flat_elements_ = (end + kAlignment - 1) / kAlignment * kAlignment;
  parameters_.push_back(std::move(parameter));
  return count() - 1;
}

void ParameterStore::allocate() {
  values_ = Tensor(pool_, {flat_elements_}, DType::f32);
  zero(values_.view());
  if (compute_dtype_ != DType::f32) {
    computes_ = Tensor(pool_, {flat_elements_}, compute_dtype_);
    zero(computes_.view());
  }
}

void ParameterStore::initialize(std::uint64_t seed) {
  for (ParameterId id = 0; id < count(); ++id) {
    const Parameter& parameter = (*this)[id];
    auto* x = as<float>(value(id));
    const std::int64_t n = parameter.elements();
    switch (parameter.initializer.kind) {
      case Initializer::Kind::zeros:
        std::fill(x, x + n, 0.0F);
        break;
      case Initializer::Kind::ones:
        std::fill(x, x + n, 1.0F);
        break;
      case Initializer::Kind::normal: {
        const std::uint64_t name =
            xxh3(parameter.name.data(), static_cast<std::int64_t>(parameter.name.size()));
        const PhiloxKey key = philox_key(mix64(seed) ^ name);
        for (const HeldRun& run : runs_of(parameter.place, 0, n)) {
          fill_normal(x + run.held_first, run.whole_first, run.elements, key,
                      parameter.initializer.deviation);
        }
        break;
      }
    }
  }
  refresh_computes();
}

void ParameterStore::refresh_computes() {
  if (compute_dtype_ == DType::f32) {
    return;
  }
  const auto* from = as<float>(values());
  auto* to = as<bf16>(computes());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < flat_elements_; ++i) {
    to[i] = to_bf16(from[i]);
  }
}

std::vector<ParameterId> ParameterStore::ids_by_name() const {
  std::vector<ParameterId> ids(parameters_.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(),
            [this](ParameterId a, ParameterId b) { return (*this)[a].name < (*this)[b].name; });
  return ids;
}

std::int64_t ParameterStore::joined_elements(ParameterId first, int count) const {
  std::int64_t elements = 0;
  for (ParameterId id = first; id < first + count; ++id) {
    elements += (*this)[id].elements();
  }
  return elements;
}

std::int64_t ParameterStore::parameter_elements() const {
  return std::accumulate(
      parameters_.begin(), parameters_.end(), std::int64_t{0},
      [](std::int64_t sum, const Parameter& parameter) { return sum + parameter.elements(); });
}

}  // namespace trireme
