#include "benchmarks/ckpt/model_state.h"

#include <map>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

double gib(const ModelState& state) { return static_cast<double>(state.bytes()) / (1 << 30); }

TEST(ModelState, SizesAreThoseOfMlperfStorage) {
  // Table 2 of its rules: 105 GB, 912 GB, 5.29 TB, in multiples of 2^30.
  EXPECT_NEAR(gib(find_model_state("llama3-8b")), 105, 0.5);
  EXPECT_NEAR(gib(find_model_state("llama3-70b")), 912, 1);
  EXPECT_NEAR(gib(find_model_state("llama3-405b")), 5290, 5);
  // Llama 3.1 8B has this many parameters (Llama Team, 2024).
  EXPECT_EQ(find_model_state("llama3-8b").parameters, 8'030'261'248);
  EXPECT_THROW(find_model_state("llama3"), ConfigError);
}

// Returns how often each element of each tensor is saved, as the sum over the tensor, and checks
// that the ranges follow each other.
void check_tiling(const ModelState& state, std::int64_t bytes, int ranks) {
  std::map<std::string, std::int64_t> next;
  std::map<std::string, std::int64_t> whole;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const StatePart& part : state.parts(bytes, rank, ranks)) {
      EXPECT_EQ(part.first, next[part.tensor]) << part.tensor << " of " << ranks;
      EXPECT_GT(part.own, 0);
      next[part.tensor] += part.own;
      whole[part.tensor] = part.elements;
    }
  }
  EXPECT_EQ(std::ssize(whole), 4 * state.layers);
  EXPECT_EQ(next, whole);
}

TEST(ModelState, RanksSaveEveryElementOnce) {
  for (const std::string& name : model_state_names()) {
    for (const int ranks : {1, 2, 3, 8, 13}) {
      check_tiling(find_model_state(name), 1 << 20, ranks);
    }
    check_tiling(find_model_state(name), 1, 2);  // fewer elements than ranks
  }
}

std::int64_t bytes_of(const std::vector<StatePart>& parts, const std::string& tensor) {
  std::int64_t bytes = 0;
  for (const StatePart& part : parts) {
    bytes += part.tensor.ends_with(tensor) ? part.own * part.element_bytes : 0;
  }
  return bytes;
}

TEST(ModelState, Zero1LeavesTheWeightsToTheFirstReplica) {
  const ModelState state = find_model_state("llama3-405b");
  const std::int64_t bytes = 14 * 126 * 4000;
  for (int rank = 0; rank < 4; ++rank) {
    const auto parts = state.parts(bytes, rank, 4);
    EXPECT_EQ(bytes_of(parts, "weight"), rank < 2 ? 126 * 4000 * 2 / 2 : 0);
    EXPECT_EQ(bytes_of(parts, "moment1"), 126 * 4000 * 4 / 4);
  }
  EXPECT_EQ(state.replicas_of(3), 1);
  EXPECT_EQ(find_model_state("llama3-8b").replicas_of(3), 3);
}

}  // namespace
}  // namespace trireme
