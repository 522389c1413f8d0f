#include "src/plan/rates.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

// The tiles that libraries of products choose from, with the rate of a unit by that of the largest.
struct Tile {
  std::int64_t m, n;
  double rate;
};
constexpr std::array kTiles = {Tile{256, 128, 1},   Tile{128, 256, 1},   Tile{128, 128, 0.95},
                               Tile{256, 64, 0.85}, Tile{64, 256, 0.85}, Tile{128, 64, 0.8},
                               Tile{64, 128, 0.8},  Tile{64, 64, 0.65}};
// The start and end of a tile take as long as this many terms of its sums.
constexpr double kTileOverhead = 96;
// What tensor cores need operands to be aligned to, in elements of 2 bytes; and the rate of vector
// units by theirs (A100: 19.5 of 312 TFLOP/s; H100: 67 of 989).
constexpr std::int64_t kAlignment = 8;
constexpr double kVectorShare = 1.0 / 16;

std::int64_t ceil_of(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

double efficiency_of(const Cluster& cluster, PlanPrecision precision) {
  return precision == PlanPrecision::fp8 && cluster.device.fp8_tflops > 0
             ? cluster.efficiency.fp8_products
             : cluster.efficiency.products;
}

// Returns the time of computing alone, in waves of tiles.
double tile_seconds(const Cluster& cluster, double rate, const PlannedProduct& s) {
  const int units = cluster.device.compute_units;
  const auto terms = static_cast<double>(s.k) + kTileOverhead;
  double best = 0;
  for (const Tile& tile : kTiles) {
    const std::int64_t tiles = ceil_of(s.m, tile.m) * ceil_of(s.n, tile.n) * s.count;
    const auto waves = static_cast<double>(ceil_of(tiles, units));
    const double flops = 2.0 * static_cast<double>(tile.m * tile.n) * terms;
    const double seconds = waves * flops / (rate / units * tile.rate);
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace

double peak_flops(const Cluster& cluster, PlanPrecision precision) {
  const Cluster::Device& device = cluster.device;
  if (precision == PlanPrecision::fp8 && device.fp8_tflops > 0) {
    return device.fp8_tflops * kTera;
  }
  if (precision == PlanPrecision::fp32 && device.fp32_tflops > 0) {
    return device.fp32_tflops * kTera;
  }
  return device.bf16_tflops * kTera;
}

double product_seconds(const Cluster& cluster, PlanPrecision precision, const PlannedProduct& s) {
  double rate = peak_flops(cluster, precision) * efficiency_of(cluster, precision);
  const bool on_gpu = cluster.device.kind == "gpu";
  if (on_gpu && (s.k % kAlignment != 0 || s.n % kAlignment != 0)) {
    rate = peak_flops(cluster, precision) * kVectorShare;
  }
  const auto count = static_cast<double>(s.count);
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  const auto k = static_cast<double>(s.k);
  const double computing = cluster.device.compute_units > 0 ? tile_seconds(cluster, rate, s)
                                                            : 2 * m * n * k * count / rate;
  const double element = element_bytes(precision);
  const double moving = kernel_seconds(cluster, element * count * (m * k + k * n + m * n));
  // Not std::hypot, which would need glibc 2.35.
  return std::sqrt(computing * computing + moving * moving);
}

double kernel_seconds(const Cluster& cluster, double bytes) {
  const double rate = cluster.device.memory_gb_per_s * kGiga * cluster.efficiency.memory;
  return std::max(bytes / rate, cluster.device.launch_us * kMicro);
}

double ring_bytes_per_second(const Cluster& cluster, const RingGroup& group) {
  const double links = cluster.links.gb_per_s * kGiga * cluster.efficiency.links;
  if (group.ranks <= group.per_node) {
    return links;
  }
  const double device_share = cluster.network.gb_per_s * kGiga * cluster.efficiency.network *
                              cluster.network.taper / cluster.device.per_node;
  const double network = device_share * static_cast<double>(group.per_node);
  return group.per_node > 1 ? std::min(links, network) : network;
}

double ring_seconds(const Cluster& cluster, const RingGroup& group, double bytes, int rounds) {
  if (group.ranks <= 1) {
    return 0;
  }
  const auto n = static_cast<double>(group.ranks);
  const bool within_node = group.ranks <= group.per_node;
  const double latency =
      kMicro * (within_node ? cluster.links.latency_us : cluster.network.latency_us);
  return rounds *
         ((n - 1) / n * bytes / ring_bytes_per_second(cluster, group) + std::log2(n) * latency);
}

double message_seconds(const Cluster& cluster, bool within_node, double bytes) {
  if (within_node) {
    return bytes / (cluster.links.gb_per_s * kGiga * cluster.efficiency.links) +
           cluster.links.latency_us * kMicro;
  }
  const double rate = cluster.network.gb_per_s * kGiga * cluster.efficiency.network *
                      cluster.network.taper / cluster.device.per_node;
  return bytes / rate + cluster.network.latency_us * kMicro;
}

}  // namespace trireme
