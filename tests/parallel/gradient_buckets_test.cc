#include "src/parallel/gradient_buckets.h"

#include <gtest/gtest.h>

#include "tests/parallel/test_parameters.h"

namespace trireme {
namespace {

// The buckets tile the flat buffer from its end, and hold each parameter once, in reverse.
void expect_cover(const ParameterStore& store, const std::vector<GradientBucket>& buckets) {
  std::int64_t end = store.flat_elements();
  ParameterId next = store.count() - 1;
  for (const GradientBucket& bucket : buckets) {
    EXPECT_EQ(bucket.first + bucket.elements, end);
    EXPECT_FALSE(bucket.parameters.empty());
    for (const ParameterId id : bucket.parameters) {
      EXPECT_EQ(id, next--);
      EXPECT_GE(store[id].offset, bucket.first);
      EXPECT_LE(store[id].offset + store[id].elements(), end);
    }
    end = bucket.first;
  }
  EXPECT_EQ(end, 0);
  EXPECT_EQ(next, -1);
}

TEST(GradientBuckets, CoverEverythingOnce) {
  Pool pool{Device{}};
  const auto store = make_parameters(pool, {100000, 10, 64, 65, 5000, 1, 3000, 700, 9});
  for (const std::int64_t bytes : {1, 256, 1000, 20000, 1 << 20, 1 << 30}) {
    expect_cover(*store, cut_into_buckets(*store, bytes));
  }
  EXPECT_EQ(cut_into_buckets(*store, 1).size(), 9U);
  EXPECT_EQ(cut_into_buckets(*store, 1 << 30).size(), 1U);
}

TEST(GradientBuckets, LargeParametersStandAlone) {
  Pool pool{Device{}};
  const auto store = make_parameters(pool, {kSumBlock, 100000, kSumBlock, kSumBlock});
  const auto buckets = cut_into_buckets(*store, kSumBlock * 4 * 3);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].parameters, (std::vector<ParameterId>{3, 2}));
  EXPECT_EQ(buckets[1].parameters, std::vector<ParameterId>{1});
  EXPECT_EQ(buckets[2].parameters, std::vector<ParameterId>{0});
}

TEST(GradientBuckets, CloseWhenFull) {
  Pool pool{Device{}};
  const auto store = make_parameters(pool, {kSumBlock, kSumBlock, kSumBlock, kSumBlock, kSumBlock});
  const auto buckets = cut_into_buckets(*store, kSumBlock * 4 * 2);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].parameters.size(), 2U);
  EXPECT_EQ(buckets[2].parameters.size(), 1U);
}

}  // namespace
}  // namespace trireme
