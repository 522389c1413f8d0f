#include "src/train/memory/available_memory.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// The root folder contains files such as those of the kernel.
class AvailableMemoryTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  AvailableMemory read() const { return available_memory(folder_.path()); }
  // 8 GiB.
  void write_meminfo() {
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
  }

  static constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  TempFolder folder_;
};

TEST_F(AvailableMemoryTest, IsThatOfTheHostWhereNothingElseLimits) {
  write_meminfo();
  EXPECT_EQ(read().bytes, 8 * kGiB);
  EXPECT_EQ(read().source, "MemAvailable");
  // This group has no limit.
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(read().bytes, 8 * kGiB);
}

TEST_F(AvailableMemoryTest, AGroupOfVersion2CountsItsLimitLessWhatIsBusy) {
  write_meminfo();
  write("proc/self/cgroup", "0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/memory.max", "3221225472\n");
  write("sys/fs/cgroup/slice/job/memory.current", "2147483648\n");
  EXPECT_EQ(read().bytes, kGiB);
  EXPECT_EQ(read().source,
            "control group " + (folder_.path() / "sys/fs/cgroup/slice/job").string());
  // The kernel can drop page cache, so it counts as available.
  write("sys/fs/cgroup/slice/job/memory.stat", "anon 5\ninactive_file 1073741824\n");
  EXPECT_EQ(read().bytes, 2 * kGiB);
}

TEST_F(AvailableMemoryTest, ALimitFurtherUpHoldsToo) {
  write_meminfo();
  write("proc/self/cgroup", "0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  write("sys/fs/cgroup/slice/job/memory.current", "0\n");
  write("sys/fs/cgroup/slice/memory.max", "1073741824\n");
  write("sys/fs/cgroup/slice/memory.current", "0\n");
  EXPECT_EQ(read().bytes, kGiB);
}

TEST_F(AvailableMemoryTest, KnowsVersion1) {
  write_meminfo();
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:blkio,memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3221225472\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "cache 7\ntotal_inactive_file 1073741824\n");
  EXPECT_EQ(read().bytes, 2 * kGiB);
  // The kernel writes this number for "no limit". The second path is not visible inside a
  // container.
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().bytes, 8 * kGiB);
  write("proc/self/cgroup", "4:memory:/elsewhere/job\n");
  EXPECT_EQ(read().bytes, 8 * kGiB);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
  EXPECT_EQ(read().bytes, 2 * kGiB);
}

TEST_F(AvailableMemoryTest, WhatIsFullLeavesNothing) {
  write_meminfo();
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(read().bytes, 0);
}

TEST_F(AvailableMemoryTest, WhatCannotBeReadLimitsNothing) {
  EXPECT_GT(read().bytes, std::int64_t{1} << 60);
  for (const char* text : {"", "MemAvailable:", "MemAvailable: x kB\n", "MemAvailable: -5 kB\n",
                           "MemAvailable: 99999999999999999999999 kB\n",
                           "MemAvailable: 9223372036854775807 kB\n", "\0\xFF"}) {
    write("proc/meminfo", text);
    EXPECT_GT(read().bytes, std::int64_t{1} << 60) << text;
  }
  write_meminfo();
  for (const char* text : {"", ":", "::", "0", "0:", "0::", "0::..", "0::/../../..", "4:memory",
                           "4:memory:", "9:memory:///////", "\xFF\xFE:::"}) {
    write("proc/self/cgroup", text);
    EXPECT_EQ(read().bytes, 8 * kGiB) << text;
  }
  write("proc/self/cgroup", "0::/job\n");
  for (const char* text : {"", "x", "-1", "1e3x", "99999999999999999999999"}) {
    write("sys/fs/cgroup/job/memory.max", text);
    write("sys/fs/cgroup/job/memory.current", "x");
    EXPECT_EQ(read().bytes, 8 * kGiB) << text;
  }
}

TEST(AvailableMemory, OfThisMachineIsSomething) {
  const AvailableMemory here = available_memory();
  EXPECT_GT(here.bytes, 0);
  EXPECT_LT(here.bytes, std::int64_t{1} << 60);
}

}  // namespace
}  // namespace trireme
