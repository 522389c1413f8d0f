// ProcessGrid: which data-parallel replica, tensor-parallel part and pipeline stage a rank is: pure
// functions of the rank. Tensor-parallel neighbours are next to each other, pipeline stages
// farthest apart: rank = (pp_rank * dp + dp_rank) * tp + tp_rank. Axes that may join later (context
// and expert parallelism) would stand between tp and dp.
#pragma once

#include <functional>
#include <optional>

namespace trireme {

// An axis without a degree is solved: dp takes what the others leave over, and open others are 1;
// where dp is given, tp takes the most that fits into a host and the model, and pp what is left.
struct GridShape {
  std::optional<int> dp;
  std::optional<int> tp = 1;
  std::optional<int> pp = 1;
  std::function<bool(int)> tp_works = {};  // with the model; empty: any does
};

class ProcessGrid {
 public:
  // ConfigError, with the formula and its numbers, for a shape that does not fill the world.
  // ranks_a_host: bounds a tp that is solved for; 0: nothing is known.
  ProcessGrid(int world_size, const GridShape& shape, int ranks_a_host = 0);

  int dp() const { return dp_; }
  int tp() const { return tp_; }
  int pp() const { return pp_; }
  int world_size() const { return dp_ * tp_ * pp_; }

  int tp_rank(int rank) const { return rank % tp_; }
  int dp_rank(int rank) const { return rank / tp_ % dp_; }
  int pp_rank(int rank) const { return rank / tp_ / dp_; }
  int rank_at(int dp_rank, int tp_rank, int pp_rank) const {
    return (pp_rank * dp_ + dp_rank) * tp_ + tp_rank;
  }
  // The colour of a rank in the split that makes the groups along an axis; its key there is its
  // rank along that axis.
  int dp_color(int rank) const { return pp_rank(rank) * tp_ + tp_rank(rank); }
  int tp_color(int rank) const { return pp_rank(rank) * dp_ + dp_rank(rank); }
  int pp_color(int rank) const { return dp_rank(rank) * tp_ + tp_rank(rank); }

 private:
  int dp_ = 1;
  int tp_ = 1;
  int pp_ = 1;
};

}  // namespace trireme
