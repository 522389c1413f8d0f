#include "benchmarks/coll/nccl_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

// The expected rows were printed by nccl-tests 2.17 (github.com/kvcache-ai/Mooncake, pull request
// 3484).
TEST(NcclTable, RowsAreTheirs) {
  const auto row = [](std::int64_t bytes, NcclCell out_of_place, NcclCell in_place) {
    return nccl_row_start({{bytes, bytes / 4, bytes / 4}, "float", "sum", -1}) +
           nccl_cell(out_of_place) + nccl_cell(in_place);
  };
  EXPECT_EQ(row(32768, {18.66, 1.76, 3.07, 0}, {17.95, 1.83, 3.20, 0}),
            "       32768          8192     float     sum      -1    18.66    1.76    3.07       0"
            "    17.95    1.83    3.20       0");
  EXPECT_EQ(row(8388608, {81.16, 103.36, 180.88, 0}, {80.46, 104.26, 182.45, 0}),
            "     8388608       2097152     float     sum      -1    81.16  103.36  180.88       0"
            "    80.46  104.26  182.45       0");
}

// The formats are those of nccl-tests: two decimals while they fit, then one, none, and an
// exponent.
TEST(NcclTable, NumbersFitTheirColumns) {
  EXPECT_EQ(nccl_number(0.004, 7), "   0.00");
  EXPECT_EQ(nccl_number(1211.2, 7), "1211.20");
  EXPECT_EQ(nccl_number(12345.67, 7), "12345.7");
  EXPECT_EQ(nccl_number(123456.7, 7), " 123457");
  EXPECT_EQ(nccl_number(1234567.8, 7), "1234568");
  EXPECT_EQ(nccl_number(12345678.9, 7), "1.2e+07");
  EXPECT_EQ(nccl_number(999.99, 6), "999.99");
  EXPECT_EQ(nccl_number(1715.44, 6), "1715.4");
  EXPECT_EQ(nccl_number(43046.1, 6), " 43046");
  EXPECT_EQ(nccl_number(12345678, 6), " 1e+07");
}

TEST(NcclTable, UncheckedIsNotApplicable) {
  EXPECT_EQ(nccl_cell({1, 2, 3, std::nullopt}), "     1.00    2.00    3.00    N/A");
  EXPECT_EQ(nccl_cell({1, 2, 3, 12}), "     1.00    2.00    3.00      12");
}

// The expected text follows from the format strings of nccl-tests' src/util.cu.
TEST(NcclTable, HeaderAndFooter) {
  const std::string header = nccl_header({.program = "trireme",
                                          .test = "all_reduce_perf",
                                          .min_bytes = 8,
                                          .max_bytes = 1024,
                                          .step = 2,
                                          .step_is_factor = true,
                                          .warmup = 5,
                                          .iterations = 20,
                                          .aggregated = 1,
                                          .checks = 1,
                                          .devices = {nccl_device_line(0, 77, "n1", 3, "cpus 0")}});
  EXPECT_EQ(
      header,
      "# trireme\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 "
      "agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid     77 on         n1 device  3 [0000:00:00] cpus 0\n"
      "#\n"
      "#                                                              out-of-place              "
      "         in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong   "
      "  time   algbw   busbw  #wrong \n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)           "
      "  (us)  (GB/s)  (GB/s)         \n");
  EXPECT_EQ(nccl_footer(0, 159.151, "all_reduce_perf"),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 159.151 \n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n"
            "#\n");
  EXPECT_THAT(nccl_footer(2, 0, "x"), testing::StartsWith("# Out of bounds values : 2 FAILED\n"));
}

}  // namespace
}  // namespace trireme
