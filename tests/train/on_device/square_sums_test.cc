#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/optim/gradient_norm.h"

namespace trireme {
namespace {

// Returns a store whose parameters have odd sizes, so that gaps follow them. The third is joined to
// the second, and the fifth is not trained. The ninth and tenth are copies of another rank's,
// joined to the eighth: they lie in what would be the gap between that one and the last.
ParameterStore odd_parameters(DeviceContext& context) {
  ParameterStore store(context, DType::f32);
  for (const std::int64_t elements : {5000, 300, 9001, 4096, 4097, 12000, 7, 40, 10, 10, 300}) {
    Parameter parameter;
    const std::int64_t number = store.count();
    parameter.name = fmt::format("p{}", number);
    parameter.place = Place::all({elements});
    parameter.place.primary = number != 8 && number != 9;
    parameter.joined = number == 2 || number == 8 || number == 9;
    parameter.trained = number != 4;
    store.add(std::move(parameter));
  }
  return store;
}

double sum_of_ranges(DeviceContext& context, const ParameterStore& store, const ConstView& flat,
                     std::int64_t blocks) {
  SquareSums sums(context);
  const std::int64_t step = blocks * kSumBlock;
  for (std::int64_t first = 0; first < flat.count; first += step) {
    sums.add(store, first, flat.slice(first, std::min(step, flat.count - first)));
  }
  return sums.read().value();
}

// A GPU sums the squares of several parameters in one call, unless the range ends between them.
TEST(SquareSums, OfSeveralParametersHaveTheBitsOfTheirBlocks) {
  DeviceContext context({DeviceKind::cuda, 0}, 1);
  const ParameterStore store = odd_parameters(context);
  const Tensor flat(context.state(), {store.flat_elements()}, DType::f32);
  double expected = 0;
  context.write<float>(flat.view(), [&](float* to) {
    std::fill_n(to, store.flat_elements(), 0.0F);
    for (const Parameter& parameter : store.all()) {
      for (std::int64_t i = parameter.offset; i < parameter.offset + parameter.elements(); ++i) {
        to[i] = std::sin(static_cast<float>(i));
        if (parameter.trained && parameter.place.primary) {
          expected += static_cast<double>(to[i]) * static_cast<double>(to[i]);
        }
      }
    }
  });
  const double whole = sum_of_ranges(context, store, flat.view(), 1 << 20);
  EXPECT_NEAR(whole, expected, 1e-10 * expected);
  for (const std::int64_t blocks : {1, 2, 3}) {
    EXPECT_EQ(sum_of_ranges(context, store, flat.view(), blocks), whole) << blocks;
  }
}

}  // namespace
}  // namespace trireme
