#include "io/checkpoint/tiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/philox.h"

namespace trireme {
namespace {

using testing::HasSubstr;

// Returns whether each element is covered exactly once, by counting.
bool tiles(const std::vector<Extent>& extents, const Shape& shape) {
  std::vector<int> times(static_cast<std::size_t>(shape.elements()), 0);
  for (const Extent& extent : extents) {
    for (const Run1d& run : runs_of(extent, shape)) {
      for (std::int64_t i = 0; i < run.elements; ++i) {
        ++times[static_cast<std::size_t>(run.whole_first + i)];
      }
    }
  }
  return std::all_of(times.begin(), times.end(), [](int n) { return n == 1; });
}

// Cuts the whole tensor into boxes, one random cut at a time.
std::vector<Extent> cut_at_random(const Shape& shape, int cuts, std::uint64_t seed) {
  std::vector<Extent> boxes = {Extent::whole(shape)};
  for (int i = 0; i < cuts; ++i) {
    const std::uint64_t random = mix64(1000 * seed + static_cast<std::uint64_t>(i));
    Extent& box = boxes[random % boxes.size()];
    const std::size_t axis = (random >> 16) % box.start.size();
    const auto first = static_cast<std::int64_t>((random >> 32) %
                                                 static_cast<std::uint64_t>(box.length[axis] + 1));
    Extent rest = box;
    box.length[axis] = first;
    rest.start[axis] += first;
    rest.length[axis] -= first;
    boxes.push_back(rest);
  }
  return boxes;
}

TEST(TilingFault, AgreesWithCounting) {
  int good = 0;
  int bad = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    const std::vector<Shape> shapes = {{7}, {4, 5}, {3, 2, 4}, {2, 3, 2, 2}};
    const Shape& shape = shapes[round % shapes.size()];
    std::vector<Extent> boxes = cut_at_random(shape, static_cast<int>(round % 9), round);
    const std::uint64_t random = mix64(77 * round);
    if (random % 2 == 0) {  // shift one along an axis
      Extent& box = boxes[(random >> 8) % boxes.size()];
      const std::size_t axis = (random >> 24) % box.start.size();
      box.start[axis] += (random >> 40) % 2 == 0 && box.start[axis] > 0 ? -1 : 1;
    }
    const bool fits =
        std::all_of(boxes.begin(), boxes.end(), [&](const Extent& box) { return box.fits(shape); });
    const bool expected = fits && tiles(boxes, shape);
    EXPECT_EQ(tiling_fault(boxes, shape).empty(), expected) << round;
    ++(expected ? good : bad);
  }
  EXPECT_GT(good, 1000);
  EXPECT_GT(bad, 500);
}

TEST(TilingFault, JudgesFlatRanges) {
  const Shape shape = {4, 3};
  EXPECT_EQ(tiling_fault({Extent::flat(5, 7), Extent::flat(0, 5), Extent::flat(3, 0)}, shape), "");
  EXPECT_THAT(tiling_fault({Extent::flat(4, 7), Extent::flat(0, 5)}, shape), HasSubstr("overlap"));
}

// All boxes start at the same position of the first axis. Comparing all pairs took half a minute.
TEST(TilingFault, TakesManyBoxes) {
  constexpr std::int64_t kBoxes = 100'000;
  std::vector<Extent> boxes;
  for (std::int64_t i = 0; i < kBoxes; ++i) {
    boxes.push_back({Extent::Kind::box, {0, i}, {5, 1}});
  }
  EXPECT_EQ(tiling_fault(boxes, {5, kBoxes}), "");
  boxes[70'000].start[1] = 3;
  EXPECT_THAT(tiling_fault(boxes, {5, kBoxes}), HasSubstr("overlap"));
}

}  // namespace
}  // namespace trireme
