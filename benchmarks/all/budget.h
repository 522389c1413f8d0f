// Budget divides the time of `trireme bench all` among its questions: each is told its share of the
// time that is left, in proportion to its weight, so what one question saves or wastes is spread
// over the later ones. A pure value.
#pragma once

#include <vector>

namespace trireme {

class Budget {
 public:
  // weights: of all questions, in order, each above 0. seconds: for all of them.
  Budget(std::vector<double> weights, double seconds)
      : weights_(std::move(weights)), seconds_(seconds) {}
  // Returns the seconds of question i, which begins when `elapsed` of the seconds are over; at
  // least 0.
  double share(std::size_t i, double elapsed) const;
  // Returns the seconds that question i gets if those before it take as long as planned. They
  // depend on the machine's speed in no way.
  double planned(std::size_t i) const;
  // Returns the seconds by which question i chooses sizes: the planned ones, so that equal nodes
  // measure equal sizes, or what is left if that is much less.
  double for_sizes(std::size_t i, double elapsed) const;

 private:
  std::vector<double> weights_;
  double seconds_;
};

// Returns the largest value of an ascending ladder that is not above `most`, or the first one.
double largest_rung(const std::vector<double>& ladder, double most);

}  // namespace trireme
