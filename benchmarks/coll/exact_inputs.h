// ExactInputs makes inputs whose sums over all ranks are whole numbers that the type represents
// exactly, whatever the order of summation, so that the wrong elements of a result can be counted.
// Element i of rank r is a hash of (r, i mod 8191). Because the period is prime, parts that are
// swapped or shifted by a power of two differ. A value type.
#pragma once

#include <vector>

#include "mpi/communicator.h"

namespace trireme {

class ExactInputs {
 public:
  ExactInputs(DType dtype, int ranks) : dtype_(dtype), ranks_(ranks) {}

  // Fills `data` with this rank's elements number first, first + 1, ...
  void fill(const View& data, int rank, std::int64_t first) const;
  // Returns how many elements of `data` differ from those of fill().
  std::int64_t count_wrong(const ConstView& data, int rank, std::int64_t first) const;
  // Returns how many elements of `data` differ from the reduction of all ranks' inputs.
  std::int64_t count_wrong(const ConstView& data, ReduceOp op, std::int64_t first) const;

  // Returns element i of a rank, whose magnitude is at most limit().
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
