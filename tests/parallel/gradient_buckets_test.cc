#include "src/parallel/gradient_buckets.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/parallel/test_parameters.h"

namespace trireme {
namespace {

using Range = std::pair<ParameterId, ParameterId>;

std::vector<Range> ranges(const std::vector<GradientBucket>& buckets) {
  std::vector<Range> ranges;
  for (const GradientBucket& bucket : buckets) {
    ranges.emplace_back(bucket.begin, bucket.end);
  }
  return ranges;
}

// The buckets tile the flat buffer from its end.
void expect_cover(const ParameterStore& store, const std::vector<GradientBucket>& buckets) {
  std::int64_t end = store.flat_elements();
  ParameterId last = store.count();
  for (const GradientBucket& bucket : buckets) {
    EXPECT_EQ(bucket.first + bucket.elements, end);
    EXPECT_EQ(bucket.end, last);
    ASSERT_LT(bucket.begin, bucket.end);
    EXPECT_EQ(bucket.first, store[bucket.begin].offset);
    EXPECT_FALSE(store[bucket.begin].joined);
    end = bucket.first;
    last = bucket.begin;
  }
  EXPECT_EQ(end, 0);
  EXPECT_EQ(last, 0);
}

TEST(GradientBuckets, CoverEverythingOnce) {
  DeviceContext context(Device::cpu(), 1);
  const auto store = declare_parameters(context, {100000, 10, 64, 65, 5000, 1, 3000, 700, 9});
  for (const std::int64_t bytes : {1, 256, 1000, 20000, 1 << 20, 1 << 30}) {
    expect_cover(*store, cut_into_buckets(*store, bytes));
    expect_cover(*store, cut_into_buckets(*store, bytes, {0, 3, 8}));
  }
  EXPECT_EQ(cut_into_buckets(*store, 1).size(), 9U);
  EXPECT_EQ(cut_into_buckets(*store, 1 << 30).size(), 1U);
}

TEST(GradientBuckets, LargeParametersStandAlone) {
  DeviceContext context(Device::cpu(), 1);
  const auto store = declare_parameters(context, {kSumBlock, 100000, kSumBlock, kSumBlock});
  EXPECT_EQ(ranges(cut_into_buckets(*store, kSumBlock * 4 * 3)),
            (std::vector<Range>{{2, 4}, {1, 2}, {0, 1}}));
}

TEST(GradientBuckets, CloseWhenFull) {
  DeviceContext context(Device::cpu(), 1);
  const auto store =
      declare_parameters(context, {kSumBlock, kSumBlock, kSumBlock, kSumBlock, kSumBlock});
  EXPECT_EQ(ranges(cut_into_buckets(*store, kSumBlock * 4 * 2)),
            (std::vector<Range>{{3, 5}, {1, 3}, {0, 1}}));
}

// Buckets consist of whole layers unless these exceed twice the requested size.
TEST(GradientBuckets, BeginAtBordersWherePossible) {
  DeviceContext context(Device::cpu(), 1);
  const std::vector<std::int64_t> sizes(9, kSumBlock);
  const auto store = declare_parameters(context, sizes);
  const std::vector<ParameterId> layers = {3, 6};
  EXPECT_EQ(ranges(cut_into_buckets(*store, kSumBlock * 4 * 2, layers)),
            (std::vector<Range>{{6, 9}, {3, 6}, {0, 3}}));
  EXPECT_EQ(ranges(cut_into_buckets(*store, kSumBlock * 4 * 4, layers)),
            (std::vector<Range>{{3, 9}, {0, 3}}));
  EXPECT_EQ(
      ranges(cut_into_buckets(*store, kSumBlock * 4, layers)),
      (std::vector<Range>{{8, 9}, {7, 8}, {6, 7}, {5, 6}, {4, 5}, {3, 4}, {2, 3}, {1, 2}, {0, 1}}));
}

ParameterStore with_odd_ones(DeviceContext& context) {
  ParameterStore store(context, DType::f32);
  for (int i = 0; i < 6; ++i) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", i);
    parameter.place = Place::all({2 * kSumBlock});
    parameter.joined = i == 2 || i == 3;
    parameter.trained = i != 4;
    store.add(std::move(parameter));
  }
  return store;
}

TEST(GradientBuckets, KeepWhatIsJoinedAndLeaveOutWhatIsNotTrained) {
  DeviceContext context(Device::cpu(), 1);
  const ParameterStore store = with_odd_ones(context);
  EXPECT_EQ(ranges(cut_into_buckets(store, 1)), (std::vector<Range>{{5, 6}, {1, 4}, {0, 1}}));
  EXPECT_EQ(ranges(cut_into_buckets(store, 1 << 30)), (std::vector<Range>{{5, 6}, {0, 4}}));
  EXPECT_EQ(ranges(cut_into_buckets(store, 1 << 30, {0})), (std::vector<Range>{{5, 6}, {0, 4}}));
}

}  // namespace
}  // namespace trireme
