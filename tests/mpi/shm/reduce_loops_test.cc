#include "mpi/shm/reduce_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "mpi/collective/combine.h"
#include "tests/mpi/collective_cases.h"

namespace trireme {
namespace {

// Computes the tree on f32 by combine(), two sources at a time.
std::vector<float> tree(const std::vector<std::vector<float>>& from, std::size_t lo, std::size_t hi,
                        ReduceOp op) {
  if (hi - lo == 1) {
    return from[lo];
  }
  auto left = tree(from, lo, (lo + hi) / 2, op);
  const auto right = tree(from, (lo + hi) / 2, hi, op);
  combine(view_of(left), right.data(), op);
  return left;
}

// Reduces into two destinations that begin three elements after a cache line, the second one `skew`
// elements further. Nothing around the destinations may be written.
void expect_around_the_caches(const std::vector<const void*>& sources,
                              const std::vector<float>& expected, ReduceOp op, std::size_t skew) {
  constexpr std::size_t kLineElements = 16;
  const std::size_t count = expected.size();
  std::vector<float> memory(2 * (count + 4 * kLineElements));
  void* line = memory.data();
  std::size_t room = memory.size() * sizeof(float);
  auto* const base = static_cast<float*>(std::align(64, sizeof(float), line, room));
  float* const first = base + 3;
  float* const second =
      first + (count + kLineElements) / kLineElements * kLineElements + kLineElements + skew;
  const std::array<void*, 2> apart = {first, second};
  reduce_tree_bypassing_caches(sources, apart, static_cast<std::int64_t>(count), DType::f32, op);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), first));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), second));
  EXPECT_EQ(first[-1] + first[count] + second[-1] + second[count], 0.0F);
}

class ReduceLoops : public testing::TestWithParam<int> {};

// Tries odd counts, in place and out of place, with one destination and with all.
TEST_P(ReduceLoops, FollowTheTree) {
  const auto ranks = static_cast<std::size_t>(GetParam());
  for (const std::size_t count : {1UL, 15UL, 1024UL, 3001UL}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
      std::vector<std::vector<float>> from(ranks, std::vector<float>(count));
      std::vector<const void*> sources;
      std::vector<void*> all;
      for (std::size_t r = 0; r < ranks; ++r) {
        for (std::size_t i = 0; i < count; ++i) {
          from[r][i] =
              static_cast<float>(sample(GetParam(), static_cast<std::int64_t>(i * ranks + r)));
        }
        sources.push_back(from[r].data());
        all.push_back(from[r].data());
      }
      const auto expected = tree(from, 0, ranks, op);
      std::vector<float> aside(count);
      void* const one = aside.data();
      reduce_tree(sources, {&one, 1}, static_cast<std::int64_t>(count), DType::f32, op);
      EXPECT_EQ(aside, expected);
      for (const std::size_t skew : {0UL, 1UL}) {
        expect_around_the_caches(sources, expected, op, skew);
      }
      reduce_tree(sources, all, static_cast<std::int64_t>(count), DType::f32, op);
      for (const auto& each : from) {
        EXPECT_EQ(each, expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReduceLoops, testing::Values(2, 3, 4, 5, 7, 8, 13, 64));

// Combines every bf16 with some others, among them subnormals, ties and infinities, and compares
// with the plain functions of dtype.h.
TEST(ReduceLoops, Bf16RoundsAsToBf16) {
  std::vector<bf16> a(65536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i].bits = static_cast<std::uint16_t>(i);
  }
  for (const float other :
       {0.0F, 1.0F, 1.0078125F, -3.3e38F, 1e-40F, 65536.0F, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<bf16> b(a.size(), to_bf16(other));
    std::vector<bf16> got(a.size());
    const std::array<const void*, 2> from = {a.data(), b.data()};
    void* const into = got.data();
    reduce_tree(from, {&into, 1}, static_cast<std::int64_t>(a.size()) - 1, DType::bf16,
                ReduceOp::sum);
    for (std::size_t i = 0; i + 1 < a.size(); ++i) {
      const float sum = to_float(a[i]) + to_float(b[i]);
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(to_float(got[i]))) << i;
      } else {
        ASSERT_EQ(got[i].bits, to_bf16(sum).bits) << i << " and " << other;
      }
    }
    EXPECT_EQ(got.back().bits, 0);
  }
}

}  // namespace
}  // namespace trireme
