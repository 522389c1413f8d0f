#include "src/parallel/process_grid.h"

#include <cstdint>

#include "src/base/check.h"

namespace trireme {
namespace {

void check_axis(const char* key, int value) {
  if (value < 1) {
    throw ConfigError(fmt::format("parallel.{}: {} is not a degree: take 1 or more", key, value));
  }
}

void check_supported(const char* key, int value) {
  if (value != 1) {
    throw ConfigError(fmt::format(
        "parallel.{}: {} is not available in this version, which is data-parallel only: take 1",
        key, value));
  }
}

}  // namespace

ProcessGrid::ProcessGrid(int world_size, const GridShape& shape) : tp_(shape.tp), pp_(shape.pp) {
  check(world_size > 0, "a world has ranks");
  check_axis("tp", tp_);
  check_axis("pp", pp_);
  const std::int64_t others = std::int64_t{tp_} * pp_;
  if (!shape.dp && world_size % others != 0) {
    throw ConfigError(fmt::format(
        "world_size {0} is not a multiple of tp {1} x pp {2} = {3}: start {4} ranks, or change "
        "parallel.tp or parallel.pp",
        world_size, tp_, pp_, others, (world_size / others + 1) * others));
  }
  dp_ = shape.dp ? *shape.dp : static_cast<int>(world_size / others);
  check_axis("dp", dp_);
  if (dp_ * others != world_size) {
    throw ConfigError(fmt::format(
        "world_size {} != dp {} x tp {} x pp {}: start {} ranks, or set parallel.dp to auto",
        world_size, dp_, tp_, pp_, dp_ * others));
  }
  check_supported("tp", tp_);
  check_supported("pp", pp_);
}

}  // namespace trireme
