// ProcessGrid maps a rank to its data-parallel replica, tensor-parallel part and pipeline stage,
// and back. Tensor-parallel ranks are neighbours, pipeline stages are farthest apart: rank =
// (pp_rank * dp + dp_rank) * tp + tp_rank. Axes that may be added later (context and expert
// parallelism) would stand between tp and dp. A plain value.
#pragma once

#include <functional>
#include <optional>

namespace trireme {

// The degrees of a grid; those without a value are solved for. An open dp takes the ranks that the
// others leave, and other open degrees are 1. If dp is given and both tp and pp are open, tp is the
// largest divisor that fits on a host and works with the model, and pp takes the rest; one that is
// open alone takes the rest.
struct GridShape {
  std::optional<int> dp;
  std::optional<int> tp = 1;
  std::optional<int> pp = 1;
  std::function<bool(int)> tp_works = {};  // whether the model allows a tp; empty: it allows any
};

class ProcessGrid {
 public:
  // Throws ConfigError, with the formula and its numbers, for a shape that does not fill the world.
  // ranks_per_host: an upper bound for a tp that is solved for beside pp; 0 if unknown.
  ProcessGrid(int world_size, const GridShape& shape, int ranks_per_host = 0);

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
  // Return the colour of a rank in the split of the world that makes the groups along an axis. Its
  // key in that split is its rank along the axis.
  int dp_color(int rank) const { return pp_rank(rank) * tp_ + tp_rank(rank); }
  int tp_color(int rank) const { return pp_rank(rank) * dp_ + dp_rank(rank); }
  int pp_color(int rank) const { return dp_rank(rank) * tp_ + tp_rank(rank); }

 private:
  int dp_ = 1;
  int tp_ = 1;
  int pp_ = 1;
};

}  // namespace trireme
