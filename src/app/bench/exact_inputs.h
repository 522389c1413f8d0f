// ExactInputs: inputs whose sums over all ranks are whole numbers that the type holds exactly,
// whatever the order of summation, so that every wrong element of a result can be counted. Element
// i of rank r is a hash of (r, i mod 8191): the prime period makes blocks that were swapped or
// shifted by a power of two differ. A value; its functions are pure but for what they fill.
#pragma once

#include <vector>

#include "mpi/communicator.h"

namespace trireme {

class ExactInputs {
 public:
  ExactInputs(DType dtype, int ranks) : dtype_(dtype), ranks_(ranks) {}

  // A rank's elements number first, first + 1, ...
  void fill(const View& data, int rank, std::int64_t first) const;
  // The elements of `data` that are not those of fill().
  std::int64_t count_wrong(const ConstView& data, int rank, std::int64_t first) const;
  // The elements of `data` that are not the reduction over all ranks of their inputs.
  std::int64_t count_wrong(const ConstView& data, ReduceOp op, std::int64_t first) const;

  // Element i of a rank, |value| at most limit().
  std::int64_t value(int rank, std::int64_t i) const;
  std::int64_t limit() const;

 private:
  using Period = std::vector<char>;  // the elements 0..8190 as bytes
  Period encode(const std::vector<std::int64_t>& values) const;
  Period period_of(int rank) const;
  Period reduced_period(ReduceOp op) const;

  DType dtype_;
  int ranks_;
};

}  // namespace trireme
