#include "src/plan/rates.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

// Round numbers: 100 TFLOP/s at 0.8, 1000 GB/s at 0.8, links of 100 GB/s and a network of 50 GB/s
// per node of 4 devices, both at 0.8.
Cluster round_figures() { return load_cluster("test"); }

TEST(Rates, AProductTakesItsFlopsAndItsBytes) {
  const Cluster cluster = round_figures();
  const auto expected = [](double m, double n, double k) {
    // at 80 TFLOP/s and 800 GB/s
    return std::hypot(2 * m * n * k / 80e12, 2 * (m * k + k * n + m * n) / 800e9);
  };
  EXPECT_NEAR(product_seconds(cluster, PlanPrecision::bf16, {4096, 4096, 4096, 1}),
              expected(4096, 4096, 4096), 1e-12);
  EXPECT_NEAR(product_seconds(cluster, PlanPrecision::bf16, {64, 8192, 8192, 1}),
              expected(64, 8192, 8192), 1e-12);
  // as long as a launch
  EXPECT_NEAR(product_seconds(cluster, PlanPrecision::bf16, {8, 8, 8, 1}), 5e-6, 1e-9);
}

TEST(Rates, PrecisionChoosesThePeak) {
  Cluster cluster = round_figures();
  EXPECT_EQ(peak_flops(cluster, PlanPrecision::fp8), 200e12);
  EXPECT_EQ(peak_flops(cluster, PlanPrecision::fp32), 50e12);
  cluster.device.fp8_tflops = 0;
  EXPECT_EQ(peak_flops(cluster, PlanPrecision::fp8), 100e12);
}

TEST(Rates, AWaveOfTilesIsComputedWhole) {
  Cluster cluster = round_figures();
  cluster.device.compute_units = 100;
  const auto seconds = [&](std::int64_t rows) {
    return product_seconds(cluster, PlanPrecision::bf16, {rows, 12800, 4096, 1});
  };
  EXPECT_LT(seconds(256), seconds(257));  // one more row needs a second wave
  EXPECT_NEAR(seconds(512), 2 * seconds(256), 0.15 * seconds(256));
}

TEST(Rates, UnalignedOperandsLeaveTheTensorCores) {
  const Cluster cluster = round_figures();
  const auto seconds = [&](std::int64_t k) {
    return product_seconds(cluster, PlanPrecision::bf16, {4096, 4096, k, 1});
  };
  EXPECT_GT(seconds(4092), 5 * seconds(4096));
}

TEST(Rates, RingsUseLinksOrTheirShareOfTheNetwork) {
  const Cluster cluster = round_figures();
  EXPECT_EQ(ring_bytes_per_second(cluster, {4, 4}), 80e9);
  EXPECT_NEAR(ring_bytes_per_second(cluster, {8, 4}), 40e9, 1);  // the whole node's network
  EXPECT_NEAR(ring_bytes_per_second(cluster, {8, 1}), 10e9, 1);  // a quarter of it
  EXPECT_EQ(ring_seconds(cluster, {1, 1}, 1e9, 2), 0);
  // 2 x (3/4 x 1 GB / 80 GB/s + 2 x 5 us)
  EXPECT_NEAR(ring_seconds(cluster, {4, 4}, 1e9, 2), 2 * (0.75 / 80 + 1e-5), 1e-12);
}

TEST(Rates, MessagesUseOneLinkOrOneShareOfTheNetwork) {
  const Cluster cluster = round_figures();
  EXPECT_NEAR(message_seconds(cluster, true, 8e9), 0.1 + 5e-6, 1e-12);
  EXPECT_NEAR(message_seconds(cluster, false, 1e9), 0.1 + 1e-5, 1e-12);
}

}  // namespace
}  // namespace trireme
