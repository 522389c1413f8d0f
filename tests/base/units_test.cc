#include "src/base/units.h"

#include <cmath>

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(ParseBytes, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("512"), 512);
  EXPECT_EQ(parse_bytes("512B"), 512);
  EXPECT_EQ(parse_bytes("64K"), 65536);
  EXPECT_EQ(parse_bytes("64k"), 65536);
  EXPECT_EQ(parse_bytes("4 MiB"), 4 << 20);
  EXPECT_EQ(parse_bytes("1.5GiB"), std::int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2TB"), std::int64_t{2} << 40);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* wrong : {"", " ", "K", "-1", "-1K", "nan", "inf", "1e30", "8388608T", "5 apples",
                            "1KK", "1iB", "0x10", "1 K B", "1\xff", "1K\n"}) {
    EXPECT_THROW(parse_bytes(wrong), ConfigError) << wrong;
  }
}

TEST(FormatBytes, IsShort) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::int64_t{5} << 30), "5 GiB");
}

TEST(FormatSeconds, IsShort) {
  EXPECT_EQ(format_seconds(0), "0.0s");
  EXPECT_EQ(format_seconds(0.0123), "12ms");
  EXPECT_EQ(format_seconds(0.0994), "99ms");
  EXPECT_EQ(format_seconds(0.0997), "0.1s");
  EXPECT_EQ(format_seconds(0.5), "0.5s");
  EXPECT_EQ(format_seconds(42.9), "43s");  // rounded, as in tables beside it
  EXPECT_EQ(format_seconds(59.7), "1m00s");
  EXPECT_EQ(format_seconds(3599.6), "1h00m");
  EXPECT_EQ(format_seconds(75.2), "1m15s");
  EXPECT_EQ(format_seconds(3725), "1h02m");
  EXPECT_EQ(format_seconds(std::nan("")), "?");
  EXPECT_EQ(format_seconds(INFINITY), "?");
}

TEST(Counted, TakesThePlural) {
  EXPECT_EQ(counted(1, "shard"), "1 shard");
  EXPECT_EQ(counted(0, "shard"), "0 shards");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(3, "binary entry"), "3 binary entries");
  EXPECT_EQ(counted(3, "day"), "3 days");
}

TEST(FormatCount, IsShort) {
  EXPECT_EQ(format_count(12), "12");
  EXPECT_EQ(format_count(12345678), "12.35M");
  EXPECT_EQ(format_count(-2500), "-2.500k");
  EXPECT_EQ(format_count(19000), "19.00k");
  EXPECT_EQ(format_count(4450), "4.450k");
  EXPECT_EQ(format_count(999960), "1.000M");
  EXPECT_EQ(format_count(506.25), "506.2");
  EXPECT_EQ(format_count(506), "506");
  EXPECT_EQ(format_rate(3.3e9, "B/s"), "3.30 GB/s");
  EXPECT_EQ(format_rate(968, "B/s"), "968 B/s");
  EXPECT_EQ(format_rate(999.4e3, "B/s"), "999 kB/s");
  EXPECT_EQ(format_rate(0, "B/s"), "0.00 B/s");
}

}  // namespace
}  // namespace trireme
