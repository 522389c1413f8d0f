#include "benchmarks/osu_table.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// Lines that osu_latency -c, osu_bw and osu_barrier of OSU's micro-benchmarks 7.4 print.
TEST(OsuTable, HasTheBytesOfOsu) {
  EXPECT_EQ(osu_title("Latency", "MPI_CHAR"),
            "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n");
  EXPECT_EQ(osu_columns("Avg Latency(us)", true, true),
            "# Size       Avg Latency(us)        Validation\n");
  EXPECT_EQ(osu_row(8, 0.214, 0), "8                       0.21              Pass\n");
  EXPECT_EQ(osu_row(4194304, 12345.678, 3), "4194304             12345.68              Fail\n");
  EXPECT_EQ(osu_columns("Bandwidth (MB/s)", true, false), "# Size      Bandwidth (MB/s)\n");
  EXPECT_EQ(osu_row(1, 3.5, {}), "1                       3.50\n");
  EXPECT_EQ(osu_columns("Avg Latency(us)", false, false), "# Avg Latency(us)\n");
  EXPECT_EQ(osu_row({}, 0.92, {}), "             0.92\n");
}

}  // namespace
}  // namespace trireme
