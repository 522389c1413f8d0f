#include "src/interchange/pruning.h"

#include <array>
#include <bit>
#include <vector>

#include "src/base/check.h"

namespace trireme {
namespace {

constexpr int kLowBits = 16;
constexpr std::size_t kBins = std::size_t{1} << kLowBits;

// Magnitudes have the order of these integers.
std::uint32_t magnitude(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF; }

// HistogramPlace says in which bin of a histogram the last of some smallest elements lies, and how
// many elements the bins before it hold.
struct HistogramPlace {
  std::uint32_t bin = 0;
  std::int64_t before = 0;
};

HistogramPlace place_of(const std::vector<std::int64_t>& bins, std::int64_t smallest) {
  HistogramPlace place;
  while (place.before + bins[place.bin] < smallest) {
    place.before += bins[place.bin];
    ++place.bin;
  }
  return place;
}

// Sets the kPruneGroup - kPruneKept smallest of x[0], x[stride], ... to zero.
void prune_group(float* x, std::int64_t stride) {
  std::array<bool, kPruneGroup> is_pruned{};
  for (std::int64_t n = 0; n < kPruneGroup - kPruneKept; ++n) {
    std::int64_t smallest = -1;
    for (std::int64_t i = 0; i < kPruneGroup; ++i) {
      if (!is_pruned[static_cast<std::size_t>(i)] &&
          (smallest < 0 || magnitude(x[i * stride]) < magnitude(x[smallest * stride]))) {
        smallest = i;
      }
    }
    is_pruned[static_cast<std::size_t>(smallest)] = true;
  }
  for (std::int64_t i = 0; i < kPruneGroup; ++i) {
    x[i * stride] = is_pruned[static_cast<std::size_t>(i)] ? 0 : x[i * stride];
  }
}

}  // namespace

// Finds the largest magnitude to prune by its high bits and then by its low ones.
void prune_smallest(float* x, std::int64_t count, std::int64_t zeros) {
  check(zeros >= 0 && zeros <= count, "no more weights are pruned than there are");
  if (zeros == 0) {
    return;
  }
  std::vector<std::int64_t> bins(kBins);
  for (std::int64_t i = 0; i < count; ++i) {
    ++bins[magnitude(x[i]) >> kLowBits];
  }
  const HistogramPlace high = place_of(bins, zeros);
  bins.assign(kBins, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t m = magnitude(x[i]);
    bins[m % kBins] += m >> kLowBits == high.bin ? 1 : 0;
  }
  const HistogramPlace low = place_of(bins, zeros - high.before);
  const std::uint32_t most = high.bin << kLowBits | low.bin;
  std::int64_t equal = zeros - high.before - low.before;  // weights of this magnitude to prune
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t m = magnitude(x[i]);
    if (m < most || (m == most && equal > 0)) {
      equal -= m == most ? 1 : 0;
      x[i] = 0;
    }
  }
}

void prune_by_pattern(float* x, std::int64_t rows, std::int64_t columns, bool inputs_are_rows) {
  const std::int64_t inputs = inputs_are_rows ? rows : columns;
  check(inputs % kPruneGroup == 0, "the inputs are whole groups");
  const std::int64_t groups = rows * columns / kPruneGroup;
  for (std::int64_t g = 0; g < groups; ++g) {
    if (inputs_are_rows) {
      prune_group(x + (g / columns * kPruneGroup * columns + g % columns), columns);
    } else {
      prune_group(x + g * kPruneGroup, 1);
    }
  }
}

}  // namespace trireme
