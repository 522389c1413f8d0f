// Mixture says from which of several sources each sample of a run comes, and how many samples of
// each source precede it. It is a pure function of the sample's number in the run, in constant
// memory, so that the number of samples consumed is the whole data state of a run over several
// datasets, too.
//
// The sources are the leaves of a binary tree. At each node, the samples that arrive there are
// divided by the sums of the weights on both sides: of the first n, round(n * left / (left +
// right)) go to the left. A source's share of any n samples thus differs from its weight by at most
// half a sample per level of the tree, and is exact whenever n is a multiple of the sum of all
// weights (divided by their greatest common divisor).
//
//   weights 3, 1, 4     n: 0 1 2 3 4 5 6 7 | 8 ...
//                  source: 2 0 2 0 1 2 0 2 | the same again
//
// Weights may change: a phase is a series of samples with the same weights. Each phase begins anew
// at the root, and every source continues where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trireme {

// MixtureWeights holds the weights that apply from a sample of the run on.
struct MixtureWeights {
  std::int64_t first_sample = 0;
  std::vector<std::int64_t> weights;  // of each source, not negative, at least one positive
};

struct MixturePlace {
  std::size_t source = 0;
  std::int64_t number = 0;  // of the sample among those of its source
  friend bool operator==(const MixturePlace&, const MixturePlace&) = default;
};

class Mixture {
 public:
  // One source.
  Mixture();
  // phases: at least one, by rising first_sample, the first of which is 0; with as many weights
  // each, whose sum is below 2^62.
  explicit Mixture(const std::vector<MixtureWeights>& phases);

  std::size_t sources() const { return sources_; }
  // Returns where sample n = 0, 1, ... of the run comes from.
  MixturePlace operator()(std::int64_t n) const;
  // Returns how many of the first n samples of the run come from a source.
  std::int64_t count(std::size_t source, std::int64_t n) const;

 private:
  struct Phase {
    std::int64_t first_sample = 0;
    std::vector<std::int64_t> sums;    // of the weights before each source, then of all
    std::vector<std::int64_t> before;  // samples of each source in earlier phases
  };
  const Phase& phase_of(std::int64_t n) const;

  std::size_t sources_ = 1;
  std::vector<Phase> phases_;
};

}  // namespace trireme
