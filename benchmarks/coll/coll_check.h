// CollCheck verifies a collective operation: it fills inputs whose results are known exactly and
// counts the elements of the result that are wrong.
#pragma once

#include <functional>

#include "benchmarks/coll/contestant.h"
#include "benchmarks/coll/exact_inputs.h"

namespace trireme {

class CollCheck {
 public:
  CollCheck(const CollectiveTask& task, DType dtype, int rank, int size)
      : task_(task), rank_(rank), size_(size), inputs_(dtype, size) {}

  // Puts this rank's input in its place and fills the rest with a pattern that no result contains.
  void fill(const View& data) const;
  // Returns the number of wrong elements in this rank's result.
  std::int64_t count_wrong(const View& data) const;

 private:
  View block(const View& data, int rank) const {
    return data.slice(rank * (data.count / size_), data.count / size_);
  }

  CollectiveTask task_;
  int rank_;
  int size_;
  ExactInputs inputs_;
};

}  // namespace trireme
