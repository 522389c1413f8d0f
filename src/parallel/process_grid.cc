#include "src/parallel/process_grid.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "src/base/check.h"

namespace trireme {
namespace {

void check_axis(const char* key, const std::optional<int>& value) {
  if (value && *value < 1) {
    throw ConfigError(fmt::format("parallel.{}: {} is not a degree: take 1 or more", key, *value));
  }
}

std::string axis_text(const char* axis, const std::optional<int>& value) {
  return value ? fmt::format("{} {}", axis, *value) : fmt::format("{} auto", axis);
}

std::string formula(const GridShape& s) {
  return fmt::format("{} x {} x {}", axis_text("dp", s.dp), axis_text("tp", s.tp),
                     axis_text("pp", s.pp));
}

// The largest divisor of `n` that is at most `most`.
int largest_divisor(int n, int most) {
  for (int d = std::min(n, std::max(most, 1)); d > 1; --d) {
    if (n % d == 0) {
      return d;
    }
  }
  return 1;
}

}  // namespace

ProcessGrid::ProcessGrid(int world_size, const GridShape& s, int ranks_a_host) {
  check(world_size > 0, "a world has ranks");
  check_axis("dp", s.dp);
  check_axis("tp", s.tp);
  check_axis("pp", s.pp);
  const std::int64_t given = std::int64_t{s.dp.value_or(1)} * s.tp.value_or(1) * s.pp.value_or(1);
  const bool open = !s.dp || !s.tp || !s.pp;
  if (open ? world_size % given != 0 : given != world_size) {
    const std::int64_t nearest = open ? (world_size / given + 1) * given : given;
    throw ConfigError(fmt::format("world_size {} {} {}{}: start {} ranks{}", world_size,
                                  open ? "is not a multiple of" : "!=", formula(s),
                                  open ? fmt::format(" = {}", given) : "", nearest,
                                  open ? ", or change a degree" : ", or set parallel.dp to auto"));
  }
  int rest = static_cast<int>(world_size / given);
  dp_ = s.dp.value_or(rest);
  rest = s.dp ? rest : 1;
  tp_ = s.tp.value_or(!s.pp ? largest_divisor(rest, ranks_a_host > 0 ? ranks_a_host : rest) : rest);
  rest = s.tp ? rest : rest / tp_;
  pp_ = s.pp.value_or(rest);
}

}  // namespace trireme
