#include "src/interchange/quantized_k.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/interchange/half_bytes.h"

namespace trireme {
namespace {

constexpr std::int64_t kSub = 32;
constexpr std::int64_t kSubs = kQ4KElements / kSub;
constexpr std::int64_t kScalesAt = 4;
constexpr std::int64_t kLevelsAt = 16;
constexpr float kMostLevel = 15;
constexpr float kMostScale = 63;
// The numbers of a sub-block become levels of 14 to 16 steps, of which the best fit is kept.
constexpr int kTrials = 21;
constexpr float kFirstSteps = kMostLevel - 1;
constexpr float kMoreSteps = 0.1F;
// A smaller range rounds to 0 as an f16, and its inverse could be infinite.
constexpr float kLeastRange = 1e-20F;

using Levels = std::array<float, kSub>;

// Fit says that the numbers are about factor * level - subtrahend, both at least 0.
struct Fit {
  float factor = 0;
  float subtrahend = 0;
};

float rounded_level(float x) {
  return static_cast<float>(static_cast<int>(std::clamp(x, 0.0F, kMostLevel) + 0.5F));
}

// SubBlock fits levels to 32 numbers.
class SubBlock {
 public:
  explicit SubBlock(const float* x) : x_(x) {
    float squares = 0;
    for (std::int64_t i = 0; i < kSub; ++i) {
      squares += x[i] * x[i];
    }
    const float typical = std::sqrt(squares / kSub);
    for (std::int64_t i = 0; i < kSub; ++i) {
      const float w = typical + std::abs(x[i]);
      weights_[static_cast<std::size_t>(i)] = w;
      sum_w_ += w;
      sum_wx_ += w * x[i];
    }
  }

  Fit best() const {
    const auto [least, most] = std::minmax_element(x_, x_ + kSub);
    const float low = std::min(*least, 0.0F);
    const float range = *most - low;
    if (range < kLeastRange) {
      return {0, -low};
    }
    Fit best{range / kMostLevel, -low};
    float best_error = error(best, levels(kMostLevel / range, low));
    for (int trial = 0; trial < kTrials; ++trial) {
      const float steps = kFirstSteps + kMoreSteps * static_cast<float>(trial);
      const Levels chosen = levels(steps / range, low);
      const Fit fit = fit_to(chosen);
      const float e = fit.factor > 0 ? error(fit, chosen) : best_error;
      if (e < best_error) {
        best = fit;
        best_error = e;
      }
    }
    return best;
  }

 private:
  Levels levels(float per_unit, float low) const {
    Levels chosen;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = rounded_level((x_[i] - low) * per_unit);
    }
    return chosen;
  }

  // Solves the weighted least squares for these levels. A subtrahend below 0 becomes 0.
  Fit fit_to(const Levels& levels) const {
    float l = 0;
    float ll = 0;
    float lx = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const float w = weights_[i] * levels[i];
      l += w;
      ll += w * levels[i];
      lx += w * x_[i];
    }
    const float determinant = sum_w_ * ll - l * l;
    if (!(determinant > 0)) {
      return {};
    }
    const float subtrahend = (l * lx - ll * sum_wx_) / determinant;
    if (subtrahend < 0) {
      return {lx / ll, 0};
    }
    return {(sum_w_ * lx - sum_wx_ * l) / determinant, subtrahend};
  }

  float error(const Fit& fit, const Levels& levels) const {
    float sum = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const float difference = fit.factor * levels[i] - fit.subtrahend - x_[i];
      sum += weights_[i] * difference * difference;
    }
    return sum;
  }

  const float* x_;
  std::array<float, kSub> weights_;
  float sum_w_ = 0;
  float sum_wx_ = 0;
};

// Returns the share of `most` in steps of 1/63.
std::uint8_t share_of_most(float x, float most) {
  return most > 0 ? static_cast<std::uint8_t>(std::lround(kMostScale * (x / most))) : 0;
}

std::byte low_bits(std::uint8_t x, std::uint8_t above) {
  return static_cast<std::byte>((x & 63) | (above >> 4) << 6);
}

// Returns scale and min of sub-block j.
std::array<std::uint8_t, 2> scales_at(const std::byte* scales, std::int64_t j) {
  const auto byte = [&](std::int64_t i) { return std::to_integer<int>(scales[i]); };
  if (j < 4) {
    return {static_cast<std::uint8_t>(byte(j) & 63), static_cast<std::uint8_t>(byte(j + 4) & 63)};
  }
  return {static_cast<std::uint8_t>((byte(j + 4) & 15) | byte(j - 4) >> 6 << 4),
          static_cast<std::uint8_t>(byte(j + 4) >> 4 | byte(j) >> 6 << 4)};
}

// Returns factor and subtrahend of sub-block j, as they are stored.
Fit stored_fit(const std::byte* block, std::int64_t j) {
  const auto [scale, min] = scales_at(block + kScalesAt, j);
  return {half_at(block) * static_cast<float>(scale), half_at(block + 2) * static_cast<float>(min)};
}

void put_fits(const std::array<Fit, kSubs>& fits, std::byte* to) {
  Fit most;
  for (const Fit& fit : fits) {
    most = {std::max(most.factor, fit.factor), std::max(most.subtrahend, fit.subtrahend)};
  }
  put_half(most.factor / kMostScale, to);
  put_half(most.subtrahend / kMostScale, to + 2);
  std::byte* const scales = to + kScalesAt;
  for (std::size_t j = 0; j < 4; ++j) {
    const Fit& low = fits[j];
    const Fit& high = fits[j + 4];
    const std::uint8_t scale = share_of_most(high.factor, most.factor);
    const std::uint8_t min = share_of_most(high.subtrahend, most.subtrahend);
    scales[j] = low_bits(share_of_most(low.factor, most.factor), scale);
    scales[j + 4] = low_bits(share_of_most(low.subtrahend, most.subtrahend), min);
    scales[j + 8] = static_cast<std::byte>((scale & 15) | (min & 15) << 4);
  }
}

}  // namespace

void quantize_q4_k(const float* x, std::byte* to) {
  std::array<Fit, kSubs> fits;
  for (std::int64_t j = 0; j < kSubs; ++j) {
    fits[static_cast<std::size_t>(j)] = SubBlock(x + kSub * j).best();
  }
  put_fits(fits, to);
  std::fill(to + kLevelsAt, to + kQ4KBytes, std::byte{0});
  for (std::int64_t j = 0; j < kSubs; ++j) {
    const Fit fit = stored_fit(to, j);
    std::byte* const levels = to + kLevelsAt + j / 2 * kSub;
    for (std::int64_t i = 0; fit.factor > 0 && i < kSub; ++i) {
      const float level = rounded_level((x[kSub * j + i] + fit.subtrahend) / fit.factor);
      levels[i] |= static_cast<std::byte>(static_cast<int>(level) << (j % 2 * 4));
    }
  }
}

void dequantize_q4_k(const std::byte* from, float* x) {
  for (std::int64_t j = 0; j < kSubs; ++j) {
    const Fit fit = stored_fit(from, j);
    const std::byte* const levels = from + kLevelsAt + j / 2 * kSub;
    for (std::int64_t i = 0; i < kSub; ++i) {
      const int level = std::to_integer<int>(levels[i]) >> (j % 2 * 4) & 15;
      x[kSub * j + i] = fit.factor * static_cast<float>(level) - fit.subtrahend;
    }
  }
}

}  // namespace trireme
