#include "src/parallel/reduction_tree.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/parallel/tree_nodes.h"

namespace trireme {
namespace {

// Returns the tree as a formula, such as "((0+1)+(2+3))".
std::string formula(std::int64_t lo, std::int64_t hi) {
  if (hi - lo == 1) {
    return std::to_string(lo);
  }
  const std::int64_t mid = (lo + hi) / 2;
  return "(" + formula(lo, mid) + "+" + formula(mid, hi) + ")";
}

// Returns the formula that the stack of sums builds for a node, and the stack's greatest height.
std::string by_stack(LeafRange node, std::size_t& height) {
  std::vector<std::string> stack;
  height = 0;
  for (std::int64_t leaf = node.lo; leaf < node.hi; ++leaf) {
    stack.push_back(std::to_string(leaf));
    height = std::max(height, stack.size());
    for (int merges = merges_after(leaf, node); merges > 0; --merges) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  EXPECT_EQ(stack.size(), 1U);
  return stack.back();
}

TEST(ReductionTree, SplitsInTheMiddle) {
  EXPECT_EQ(formula(0, 6), "((0+(1+2))+(3+(4+5)))");
  std::size_t height = 0;
  EXPECT_EQ(by_stack({0, 4}, height), "((0+1)+(2+3))");
  EXPECT_EQ(by_stack({4, 8}, height), "((4+5)+(6+7))");
}

TEST(ReductionTree, StackBuildsTheTreeWithinItsHeight) {
  for (std::int64_t leaves = 1; leaves <= 70; ++leaves) {
    std::size_t height = 0;
    EXPECT_EQ(by_stack({0, leaves}, height), formula(0, leaves));
    EXPECT_EQ(static_cast<int>(height), stack_height(leaves)) << leaves;
  }
  EXPECT_EQ(stack_height(1), 1);
  EXPECT_EQ(stack_height(8), 4);
  EXPECT_EQ(stack_height(9), 5);
}

// Ranks sum their own leaves, then the upper part of the same tree sums the ranks.
TEST(ReductionTree, PowersOfTwoContinueTheTree) {
  for (const std::int64_t leaves : {8, 24, 40, 56}) {
    for (const int ranks : {1, 2, 4, 8}) {
      std::vector<std::string> sums;
      for (int rank = 0; rank < ranks; ++rank) {
        const LeafRange own{leaves / ranks * rank, leaves / ranks * (rank + 1)};
        EXPECT_TRUE(is_node(own, leaves));
        std::size_t height = 0;
        sums.push_back(by_stack(own, height));
      }
      for (std::size_t n = sums.size(); n > 1; n /= 2) {
        for (std::size_t i = 0; i < n / 2; ++i) {
          sums[i] = "(" + sums[2 * i] + "+" + sums[2 * i + 1] + ")";
        }
      }
      EXPECT_EQ(sums[0], formula(0, leaves)) << ranks << " ranks";
    }
  }
}

TEST(ReductionTree, KnowsItsNodes) {
  EXPECT_TRUE(is_node({0, 6}, 6));
  EXPECT_TRUE(is_node({1, 3}, 6));
  EXPECT_TRUE(is_node({5, 6}, 6));
  EXPECT_FALSE(is_node({0, 2}, 6));
  EXPECT_FALSE(is_node({2, 4}, 6));
  EXPECT_FALSE(is_node({3, 3}, 6));
  EXPECT_FALSE(is_node({-1, 2}, 6));
  EXPECT_FALSE(is_node({3, 7}, 6));
}

TEST(ReductionTree, RefusesLeavesOutside) { EXPECT_THROW(merges_after(8, {0, 8}), InternalError); }

}  // namespace
}  // namespace trireme
