#include "src/tensor/place.h"

#include <numeric>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Returns the whole tensor's element numbers as a rank holds them, one by one.
std::vector<std::int64_t> held_elements(const Place& place) {
  std::vector<std::int64_t> held;
  for (std::int64_t r = 0; r < place.rows.count; ++r) {
    for (const IndexRange& range : place.columns) {
      for (std::int64_t c = 0; c < range.count; ++c) {
        held.push_back((place.rows.first + r) * place.whole_width() + range.first + c);
      }
    }
  }
  return held;
}

std::vector<Place> places() {
  return {Place::all({5, 7}),
          Place::all({11}),
          Place::of_rows({9, 4}, {3, 5}),
          Place::of_columns({4, 6}, {{2, 3}}),
          Place::of_columns({3, 12}, {{1, 2}, {5, 2}, {9, 2}}),
          Place::of_columns({12}, {{1, 2}, {5, 2}, {9, 2}}),
          Place::of_columns({1, 4}, {{0, 4}})};
}

// Calls f for every range of a place's held elements.
template <class F>
void each_range(const Place& place, F f) {
  const std::int64_t n = place.shape().elements();
  for (std::int64_t first = 0; first <= n; ++first) {
    for (std::int64_t count = 0; first + count <= n; ++count) {
      f(first, count);
    }
  }
}

TEST(Place, SharesDifferByOneAtMostAndCoverAll) {
  for (const std::int64_t total : {0, 1, 7, 8, 50257}) {
    for (const int parts : {1, 2, 3, 8}) {
      std::int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const IndexRange share = share_of(total, i, parts);
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.count, total / parts);
        EXPECT_LE(share.count, total / parts + 1);
        next = share.end();
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(Place, ShapeIsThatOfWhatIsHeld) {
  EXPECT_EQ(Place::of_columns({3, 12}, {{1, 2}, {5, 2}}).shape(), (Shape{3, 4}));
  EXPECT_EQ(Place::of_columns({12}, {{1, 2}, {5, 2}}).shape(), (Shape{4}));
  EXPECT_EQ(Place::of_rows({9, 4}, {3, 5}).shape(), (Shape{5, 4}));
  EXPECT_THROW(Place::of_rows({9, 4}, {5, 5}), InternalError);
  EXPECT_THROW(Place::of_columns({9, 4}, {{3, 2}}), InternalError);
}

TEST(Place, RunsNameEveryElementInOrder) {
  for (const Place& place : places()) {
    const std::vector<std::int64_t> held = held_elements(place);
    each_range(place, [&](std::int64_t first, std::int64_t count) {
      std::int64_t next = first;
      for (const HeldRun& run : runs_of(place, first, count)) {
        EXPECT_EQ(run.held_first, next);
        for (std::int64_t i = 0; i < run.elements; ++i) {
          EXPECT_EQ(held[static_cast<std::size_t>(next++)], run.whole_first + i);
        }
      }
      EXPECT_EQ(next, first + count);
    });
    EXPECT_THROW(runs_of(place, 1, place.shape().elements()), InternalError);
  }
}

TEST(Place, BlocksTileARange) {
  for (const Place& place : places()) {
    const std::vector<std::int64_t> held = held_elements(place);
    each_range(place, [&](std::int64_t first, std::int64_t count) {
      std::vector<int> seen(held.size(), 0);
      const std::vector<HeldBlock> blocks = blocks_of(place, first, count);
      EXPECT_LE(blocks.size(), 3 * place.columns.size());
      for (const HeldBlock& block : blocks) {
        const auto& length = block.extent.length;
        const std::int64_t width = length.back();
        for (const Run1d& run : runs_of(block.extent, place.whole)) {
          for (std::int64_t i = 0; i < run.elements; ++i) {
            const std::int64_t in_block = run.block_first + i;
            const std::int64_t at = block.first + in_block / width * block.pitch + in_block % width;
            ASSERT_LT(at, static_cast<std::int64_t>(held.size()));
            EXPECT_EQ(held[static_cast<std::size_t>(at)], run.whole_first + i);
            ++seen[static_cast<std::size_t>(at)];
          }
        }
      }
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(seen.size()); ++i) {
        EXPECT_EQ(seen[static_cast<std::size_t>(i)], i >= first && i < first + count ? 1 : 0);
      }
    });
  }
}

}  // namespace
}  // namespace trireme
