#include "benchmarks/calibrate/short_trains.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::Contains;
using testing::SizeIs;

TEST(ShortTrains, OneRankVariesTheModel) {
  const std::vector<TrainVariant> variants = train_variants(1, 12, 1024);
  ASSERT_THAT(variants, SizeIs(3));
  EXPECT_THAT(variants[0].arguments, Contains("parallel.dp=1"));
  EXPECT_THAT(variants[1].arguments, Contains("model.layers=6"));
  EXPECT_THAT(variants[2].arguments, Contains("data.sequence=512"));
}

TEST(ShortTrains, SeveralRanksTryEachAxis) {
  const std::vector<TrainVariant> variants = train_variants(4, 12, 1024);
  std::set<std::string> axes;
  for (const TrainVariant& variant : variants) {
    axes.insert(variant.arguments.begin(), variant.arguments.end());
  }
  for (const char* axis :
       {"parallel.dp=4", "parallel.tp=4", "parallel.pp=4", "parallel.zero=1", "parallel.zero=3"}) {
    EXPECT_THAT(axes, Contains(axis));
  }
}

TEST(ShortTrains, AModelThatCannotBeHalvedIsNot) {
  EXPECT_THAT(train_variants(1, 1, 64), SizeIs(1));
}

}  // namespace
}  // namespace trireme
