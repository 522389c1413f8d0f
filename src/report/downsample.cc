#include "src/report/downsample.h"

#include <algorithm>
#include <cmath>

namespace trireme {
namespace {

struct Series {
  const std::vector<double>& x;
  const std::vector<double>& y;
};

double triangle(const Series& s, std::size_t a, std::size_t b, double x, double y) {
  return std::abs((s.x[a] - x) * (s.y[b] - s.y[a]) - (s.x[a] - s.x[b]) * (y - s.y[a]));
}

// Returns about `most` of the points `all`, whose values are finite.
std::vector<std::size_t> largest_triangles(const Series& s, const std::vector<std::size_t>& all,
                                           std::size_t most) {
  if (all.size() <= most || most < 3) {
    return all;
  }
  std::vector<std::size_t> kept = {all.front()};
  const double width = static_cast<double>(all.size() - 2) / static_cast<double>(most - 2);
  const auto border = [&](std::size_t bucket) {
    return std::min(1 + static_cast<std::size_t>(width * static_cast<double>(bucket)),
                    all.size() - 1);
  };
  for (std::size_t bucket = 0; bucket + 2 < most; ++bucket) {
    const std::size_t begin = border(bucket);
    const std::size_t end = border(bucket + 1);
    const std::size_t next_end = std::min(std::max(border(bucket + 2), end + 1), all.size());
    double x = 0;
    double y = 0;
    for (std::size_t i = end; i < next_end; ++i) {
      x += s.x[all[i]] / static_cast<double>(next_end - end);
      y += s.y[all[i]] / static_cast<double>(next_end - end);
    }
    std::size_t best = begin;
    double largest = -1;
    for (std::size_t i = begin; i < end; ++i) {
      const double area = triangle(s, kept.back(), all[i], x, y);
      if (area > largest) {
        largest = area;
        best = i;
      }
    }
    if (begin < end) {
      kept.push_back(all[best]);
    }
  }
  kept.push_back(all.back());
  return kept;
}

}  // namespace

std::vector<std::size_t> downsample(const std::vector<double>& x, const std::vector<double>& y,
                                    std::size_t most) {
  std::vector<std::size_t> finite;
  std::vector<std::size_t> gaps;  // the first point of each gap
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::isfinite(y[i])) {
      finite.push_back(i);
    } else if (i == 0 || std::isfinite(y[i - 1])) {
      gaps.push_back(i);
    }
  }
  if (finite.empty()) {
    return {};
  }
  const Series series{x, y};
  std::vector<std::size_t> kept = largest_triangles(series, finite, most);
  const auto lower = [&](std::size_t a, std::size_t b) { return y[a] < y[b]; };
  const auto [lowest, highest] = std::minmax_element(finite.begin(), finite.end(), lower);
  kept.push_back(*lowest);
  kept.push_back(*highest);
  if (gaps.size() <= most / 4) {
    kept.insert(kept.end(), gaps.begin(), gaps.end());
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

}  // namespace trireme
