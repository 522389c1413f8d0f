#include "src/parallel/gradient_rounds.h"

#include <algorithm>

#include "src/parallel/reduction_tree.h"

namespace trireme {

std::vector<std::int64_t> GradientRounds::numbers(int rank, int ranks) const {
  std::vector<std::int64_t> numbers;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::int64_t i = 0; i < each; ++i) {
      numbers.push_back((round * ranks + rank) * each + i);
    }
  }
  return numbers;
}

GradientRounds gradient_rounds(std::int64_t micro_batches, int ranks, int level,
                               Reproducibility how) {
  check_reduction(micro_batches, ranks, how);
  GradientRounds split{1, micro_batches / ranks};
  if (level < 2 || ranks == 1) {
    return split;
  }
  if (how != Reproducibility::elastic) {
    return {split.each, 1};
  }
  while (split.each % 2 == 0) {
    split.each /= 2;
    split.rounds *= 2;
  }
  return split;
}

std::int64_t sums_kept(std::int64_t count, Reproducibility how) {
  return how == Reproducibility::elastic ? std::max(stack_height(count) - 1, 1) : 1;
}

}  // namespace trireme
