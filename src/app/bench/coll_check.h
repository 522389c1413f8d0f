// Does a collective operation give the right data? Fills inputs whose results are known exactly,
// runs it once and counts the elements that are wrong.
#pragma once

#include <functional>

#include "src/app/bench/contestant.h"
#include "src/app/bench/exact_inputs.h"

namespace trireme {

class CollCheck {
 public:
  CollCheck(const CollectiveTask& task, DType dtype, int rank, int size)
      : task_(task), rank_(rank), size_(size), inputs_(dtype, size) {}

  // This rank's input in its place, everything else a pattern that no result contains.
  void fill(const View& data) const;
  // The elements of this rank's result that are wrong.
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
