// ProcessGrid: which data-parallel replica, tensor-parallel part and pipeline stage a rank is: pure
// functions of the rank. Tensor-parallel neighbours are next to each other, pipeline stages
// farthest apart: rank = (pp_rank * dp + dp_rank) * tp + tp_rank.
#pragma once

#include <optional>

namespace trireme {

struct GridShape {
  std::optional<int> dp;  // none: whatever the other two leave over
  int tp = 1;
  int pp = 1;
};

class ProcessGrid {
 public:
  // ConfigError, with the formula and its numbers, for a shape that does not fill the world.
  ProcessGrid(int world_size, const GridShape& shape);

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
  // The colour of a rank in the split that makes the groups along the data-parallel axis; its key
  // there is dp_rank.
  int dp_color(int rank) const { return pp_rank(rank) * tp_ + tp_rank(rank); }

 private:
  int dp_;
  int tp_;
  int pp_;
};

}  // namespace trireme
