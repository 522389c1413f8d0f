#include "src/parallel/process_grid.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

void check_axis(const char* key, const std::optional<int>& value) {
  if (value && *value < 1) {
    throw ConfigError(fmt::format("parallel.{} is {}: it must be 1 or more", key, *value));
  }
}

std::string axis_text(const char* axis, const std::optional<int>& value) {
  return value ? fmt::format("{} {}", axis, *value) : fmt::format("{} auto", axis);
}

std::string formula(const GridShape& s) {
  return fmt::format("{} x {} x {}", axis_text("dp", s.dp), axis_text("tp", s.tp),
                     axis_text("pp", s.pp));
}

// Returns the largest divisor of n that is at most `most` and works, or 1.
int largest_divisor(int n, int most, const std::function<bool(int)>& works) {
  for (int d = std::min(n, std::max(most, 1)); d > 1; --d) {
    if (n % d == 0 && (!works || works(d))) {
      return d;
    }
  }
  return 1;
}

// Returns the nearest multiples of `of`, such as "4 or 8".
std::string multiples_near(std::int64_t n, std::int64_t of) {
  const std::int64_t above = (n / of + 1) * of;
  return n < of ? fmt::format("{}", above) : fmt::format("{} or {}", above - of, above);
}

// Returns the nearest layouts of n ranks with a smaller tp or pp, such as "dp 3 x tp 2 x pp 1 or
// ...".
std::string products_of(int n, const GridShape& s) {
  const int tp = s.tp.value_or(1);
  const int pp = s.pp.value_or(1);
  const int less_tp = n % pp == 0 ? largest_divisor(n / pp, tp, s.tp_works) : 0;
  const int less_pp = n % tp == 0 ? largest_divisor(n / tp, pp, {}) : 0;
  std::vector<std::string> found;
  if (less_tp > 0) {
    found.push_back(fmt::format("dp {} x tp {} x pp {}", n / pp / less_tp, less_tp, pp));
  }
  if (less_pp > 0 && less_pp != pp) {
    found.push_back(fmt::format("dp {} x tp {} x pp {}", n / tp / less_pp, tp, less_pp));
  }
  return found.empty() ? fmt::format("dp {}", n) : fmt::format("{}", fmt::join(found, " or "));
}

}  // namespace

ProcessGrid::ProcessGrid(int world_size, const GridShape& s, int ranks_per_host) {
  check(world_size > 0, "a world has ranks");
  check_axis("dp", s.dp);
  check_axis("tp", s.tp);
  check_axis("pp", s.pp);
  const std::int64_t given = std::int64_t{s.dp.value_or(1)} * s.tp.value_or(1) * s.pp.value_or(1);
  const bool open = !s.dp || !s.tp || !s.pp;
  if (!open && given != world_size) {
    throw ConfigError(fmt::format(
        "the number of ranks, {}, is not {}: start {} ranks, or set parallel.dp to auto",
        world_size, formula(s), given));
  }
  if (world_size % given != 0) {
    throw ConfigError(fmt::format(
        "the number of ranks, {}, is not a multiple of {} = {}: start {} ranks, or use {}",
        world_size, formula(s), given, multiples_near(world_size, given),
        products_of(world_size, s)));
  }
  int rest = static_cast<int>(world_size / given);
  dp_ = s.dp.value_or(rest);
  rest = s.dp ? rest : 1;
  tp_ = s.tp.value_or(
      !s.pp ? largest_divisor(rest, ranks_per_host > 0 ? ranks_per_host : rest, s.tp_works) : rest);
  rest = s.tp ? rest : rest / tp_;
  pp_ = s.pp.value_or(rest);
}

}  // namespace trireme
