#include "src/parallel/reproducibility.h"

#include <bit>
#include <string>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

bool works(std::int64_t micro_batches, int dp, Reproducibility reproducibility) {
  const bool tree = reproducibility == Reproducibility::elastic;
  return micro_batches % dp == 0 && (!tree || std::has_single_bit(static_cast<unsigned>(dp)));
}

// Returns the largest degree below dp that works, and the smallest one above it, if there is one.
std::string nearest_degrees(std::int64_t micro_batches, int dp, Reproducibility reproducibility) {
  int below = dp - 1;
  while (!works(micro_batches, below, reproducibility)) {
    --below;
  }
  std::string text = fmt::format("{}", below);
  for (int above = dp + 1; above <= micro_batches; ++above) {
    if (works(micro_batches, above, reproducibility)) {
      return text + fmt::format(" or {}", above);
    }
  }
  return text;
}

}  // namespace

std::string_view to_string(Reproducibility reproducibility) {
  switch (reproducibility) {
    case Reproducibility::elastic:
      return "elastic";
    case Reproducibility::layout:
      return "layout";
    case Reproducibility::fast:
      return "fast";
  }
  return "";
}

void check_reduction(std::int64_t micro_batches, int dp, Reproducibility reproducibility) {
  check(micro_batches > 0 && dp > 0, "the numbers of micro-batches and replicas are positive");
  if (works(micro_batches, dp, reproducibility)) {
    return;
  }
  const std::string nearest = nearest_degrees(micro_batches, dp, reproducibility);
  const std::string given =
      fmt::format("micro-batches per step = train.global_batch / train.micro_batch = {}, dp = {}",
                  micro_batches, dp);
  if (micro_batches % dp != 0) {
    throw ConfigError(
        fmt::format("the ranks cannot share a step equally: {}, and {} / {} leaves a remainder of "
                    "{}: use dp {}, or a global_batch that is a multiple of micro_batch x {}",
                    given, micro_batches, dp, micro_batches % dp, nearest, dp));
  }
  throw ConfigError(fmt::format(
      "numerics.reproducibility: elastic (the same bits whatever dp) needs dp to be "
      "a power of two that divides the number of micro-batches: {}: use dp {}, or set "
      "numerics.reproducibility to layout, which allows any dp that divides that number",
      given, nearest));
}

}  // namespace trireme
