#include "src/nn/master_weights.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/kernels/kernels.h"

namespace trireme {
namespace {

// Declares two vectors, some columns of a matrix and some rows of another one.
ParameterStore declare(DeviceContext& context, DType compute) {
  ParameterStore store(context, compute);
  const auto add = [&](const Place& place, Initializer::Kind kind) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", store.count());
    parameter.place = place;
    parameter.initializer = {kind, 0.5F};
    store.add(std::move(parameter));
  };
  add(Place::all({1001}), Initializer::Kind::normal);
  add(Place::all({77}), Initializer::Kind::ones);
  add(Place::of_columns({50, 30}, {{3, 5}, {11, 8}}), Initializer::Kind::normal);
  add(Place::of_rows({100, 60}, {7, 80}), Initializer::Kind::normal);
  return store;
}

class MasterWeightsTest : public testing::TestWithParam<DType> {};

TEST_P(MasterWeightsTest, EveryRangeStartsAsTheWholeDoes) {
  DeviceContext context(Device::cpu(), 1);
  ParameterStore whole = declare(context, GetParam());
  ParameterStore cut = declare(context, GetParam());
  whole.allocate();
  cut.allocate();
  MasterWeights expected(whole);
  expected.initialize(3);
  std::vector<HeldRange> ranges;
  for (std::int64_t first = 0; first < cut.flat_elements();) {
    const std::int64_t n =
        std::min<std::int64_t>(1 + 13 * std::ssize(ranges), cut.flat_elements() - first);
    ranges.push_back({first, cut.working_copies().slice(first, n)});
    first += n;
  }
  MasterWeights parts(cut, ranges);
  parts.initialize(3);
  EXPECT_EQ(parts.elements(), cut.flat_elements());
  for (int range = 0; range < parts.ranges(); ++range) {
    const View part = parts.values(range);
    const View same = expected.values(0).slice(parts.held(range).first, part.count);
    ASSERT_EQ(std::memcmp(part.data, same.data, static_cast<std::size_t>(part.bytes())), 0)
        << "range " << range;
  }
  EXPECT_EQ(std::memcmp(cut.working_copies().data, whole.working_copies().data,
                        static_cast<std::size_t>(whole.working_copies().bytes())),
            0);
  EXPECT_EQ(expected.value(2).count, 650);
  EXPECT_THROW((void)parts.value(2), InternalError) << "cut in pieces";
}

INSTANTIATE_TEST_SUITE_P(Types, MasterWeightsTest, testing::Values(DType::f32, DType::bf16),
                         [](const auto& each) {
                           return each.param == DType::f32 ? "f32" : "bf16";
                         });

TEST(ParameterStore, SomebodyElseMaySayWhereComputesLie) {
  DeviceContext context(Device::cpu(), 1);
  ParameterStore store = declare(context, DType::f32);
  EXPECT_THROW((void)store.compute(0), InternalError) << "nowhere yet";
  std::vector<float> home(static_cast<std::size_t>(store.flat_elements()));
  const View view{home.data(), store.flat_elements(), DType::f32};
  store.place(1, 3, view.slice(store[1].offset, 2 * kSumBlock));
  EXPECT_EQ(store.compute(2).data, home.data() + store[2].offset);
  EXPECT_THROW((void)store.compute(0), InternalError);
  EXPECT_THROW((void)store.compute(3), InternalError);
  store.place(2, 3, {});
  EXPECT_THROW((void)store.compute(2), InternalError) << "taken away";
  EXPECT_EQ(store.compute(1).count, 77);
  EXPECT_THROW(store.place(0, 4, view.slice(0, kSumBlock)), InternalError) << "too small";
  EXPECT_THROW(store.add({}), InternalError) << "too late";
}

}  // namespace
}  // namespace trireme
