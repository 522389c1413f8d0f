#include "src/nn/initial_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/base/digest.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

// Writes elements [first, first + n) of a logical tensor to x [n]. Two normal numbers are computed
// from two uniform ones (Box and Muller, 1958), in double precision: they are the same on all
// machines whose libm rounds log, cos and sin alike. After step 0, checkpoints make differences
// moot.
void fill_normal(float* x, std::int64_t first, std::int64_t n, PhiloxKey key, float deviation,
                 int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
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

}  // namespace

void set_initial_values(const Parameter& parameter, std::uint64_t seed, std::int64_t first,
                        const View& x, DeviceContext& context) {
  if (parameter.initializer.kind != Initializer::Kind::normal) {
    const bool ones = parameter.initializer.kind == Initializer::Kind::ones;
    context.kernels().fill(context.stream(), x, ones ? 1.0F : 0.0F);
    return;
  }
  const std::uint64_t name =
      xxh3(parameter.name.data(), static_cast<std::int64_t>(parameter.name.size()));
  const PhiloxKey key = philox_key(mix64(seed) ^ name);
  context.write<float>(x, [&](float* to) {
    for (const HeldRun& run : runs_of(parameter.place, first, x.count)) {
      fill_normal(to + run.held_first - first, run.whole_first, run.elements, key,
                  parameter.initializer.deviation, context.threads());
    }
  });
}

}  // namespace trireme
