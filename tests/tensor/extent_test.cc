#include "src/tensor/extent.h"

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

// Returns the block's elements as row-major numbers in the whole tensor, in the block's order.
std::vector<std::int64_t> elements_by_index(const Extent& extent, const Shape& shape) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < extent.elements(); ++i) {
    if (extent.kind == Extent::Kind::flat) {
      out.push_back(extent.start[0] + i);
      continue;
    }
    std::int64_t rest = i;
    std::int64_t whole = 0;
    std::int64_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      whole += (extent.start[a] + rest % extent.length[a]) * stride;
      rest /= extent.length[a];
      stride *= shape[axis];
    }
    out.push_back(whole);
  }
  return out;
}

std::vector<std::int64_t> elements_by_runs(const Extent& extent, const Shape& shape) {
  std::vector<std::int64_t> out;
  for (const Run1d& run : runs_of(extent, shape)) {
    EXPECT_EQ(run.block_first, static_cast<std::int64_t>(out.size()));
    for (std::int64_t i = 0; i < run.elements; ++i) {
      out.push_back(run.whole_first + i);
    }
  }
  return out;
}

TEST(Extent, RunsAgreeWithCountingOneByOne) {
  for (std::uint32_t round = 0; round < 3000; ++round) {
    const PhiloxCounter a = philox({round, 0, 0, 0}, {7, 7});
    const PhiloxCounter b = philox({round, 1, 0, 0}, {7, 7});
    const PhiloxCounter c = philox({round, 2, 0, 0}, {7, 7});
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> length;
    for (std::size_t axis = 0; axis < round % 5; ++axis) {
      const std::int64_t extent = 1 + a[axis] % 5;
      // Whole axes are frequent, because runs join there.
      const std::int64_t first = c[axis] % 2 == 0 ? 0 : b[axis] % (extent + 1);
      shape.push_back(extent);
      start.push_back(first);
      length.push_back(c[axis] % 2 == 0 ? extent : (b[axis] >> 8) % (extent - first + 1));
    }
    const Extent box = Extent::box(start, length);
    const Shape whole(shape);
    ASSERT_TRUE(box.fits(whole));
    ASSERT_EQ(elements_by_runs(box, whole), elements_by_index(box, whole)) << whole.to_string();
    const std::int64_t first = b[0] % (whole.elements() + 1);
    const Extent flat = Extent::flat(first, (b[1] >> 4) % (whole.elements() - first + 1));
    ASSERT_TRUE(flat.fits(whole));
    ASSERT_EQ(elements_by_runs(flat, whole), elements_by_index(flat, whole));
  }
}

TEST(Extent, ContiguousBlocksAreOneRun) {
  EXPECT_EQ(runs_of(Extent::whole({3, 4, 5}), {3, 4, 5}).size(), 1U);
  EXPECT_EQ(runs_of(Extent::box({1, 0, 0}, {2, 4, 5}), {3, 4, 5}).size(), 1U);
  EXPECT_EQ(runs_of(Extent::box({0, 1, 0}, {3, 2, 5}), {3, 4, 5}).size(), 3U);
  EXPECT_EQ(runs_of(Extent::flat(7, 30), {3, 4, 5}).size(), 1U);
  EXPECT_EQ(runs_of(Extent::whole({}), {}).size(), 1U);
}

TEST(Extent, KnowsWhatLiesOutside) {
  const Shape shape = {3, 4};
  constexpr std::int64_t kHuge = INT64_MAX;
  EXPECT_TRUE(Extent::box({3, 0}, {0, 4}).fits(shape));
  EXPECT_TRUE(Extent::flat(12, 0).fits(shape));
  for (const Extent& wrong :
       {Extent::box({0}, {3}), Extent::box({0, 0, 0}, {1, 1, 1}), Extent::box({0, 1}, {3, 4}),
        Extent::box({-1, 0}, {1, 1}), Extent::box({0, 0}, {1, -1}), Extent::box({1, 0}, {kHuge, 1}),
        Extent::box({kHuge, 0}, {kHuge, 1}), Extent::box({0, 0}, {1}), Extent::flat(-1, 2),
        Extent::flat(0, 13), Extent::flat(12, 1), Extent::flat(5, kHuge), Extent::flat(5, -1)}) {
    EXPECT_FALSE(wrong.fits(shape));
    EXPECT_THROW(runs_of(wrong, shape), InternalError);
  }
}

}  // namespace
}  // namespace trireme
