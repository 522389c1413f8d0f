#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/health/node_facts.h"
#include "slurm/health/node_rates.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A Machine is a tree of files in place of /proc and /sys.
class Machine {
 public:
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / path).parent_path());
    std::ofstream(folder_.path() / path) << text << "\n";
  }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

TEST(NodeFacts, OfAMachine) {
  Machine machine;
  machine.put("sys/devices/system/cpu/online", "0-3,8,10-11");
  machine.put("proc/meminfo", "MemTotal:       65843120 kB\nMemFree: 1 kB");
  machine.put("sys/class/net/eth0/device/vendor", "x");
  machine.put("sys/class/net/eth0/operstate", "up");
  machine.put("sys/class/net/eth0/speed", "25000");
  machine.put("sys/class/net/eth1/device/vendor", "x");
  machine.put("sys/class/net/eth1/operstate", "down");
  machine.put("sys/class/net/eth1/speed", "-1");
  machine.put("sys/class/net/lo/operstate", "unknown");
  machine.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  machine.put("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  const auto facts = node_facts(machine.root());
  EXPECT_EQ(facts.at("processors"), "7");
  EXPECT_EQ(facts.at("memory GiB"), "63");
  EXPECT_EQ(facts.at("link eth0"), "up 25000 Mb/s");
  EXPECT_EQ(facts.at("link eth1"), "down");
  EXPECT_EQ(facts.at("link mlx5_0/1"), "4: ACTIVE 200 Gb/sec (4X HDR)");
  EXPECT_THAT(facts, SizeIs(5));
}

TEST(NodeFacts, ErrorsOfLinks) {
  Machine machine;
  machine.put("sys/class/net/eth0/device/vendor", "x");
  machine.put("sys/class/net/eth0/statistics/rx_errors", "12");
  machine.put("sys/class/net/lo/statistics/rx_errors", "5");
  machine.put("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "3");
  machine.put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "99");
  const std::map<std::string, std::int64_t> expected = {{"link eth0 rx_errors", 12},
                                                        {"link mlx5_0/1 symbol_error", 3}};
  EXPECT_EQ(link_errors(machine.root()), expected);
}

TEST(NodeFacts, OfNothing) {
  const TempFolder empty;
  EXPECT_EQ(node_facts(empty.path()).at("processors"), "0");
  EXPECT_THAT(node_troubles(empty.path()), IsEmpty());
}

TEST(NodeFacts, MemoryErrors) {
  Machine machine;
  machine.put("sys/devices/system/edac/mc/mc0/ue_count", "0");
  EXPECT_THAT(node_troubles(machine.root()), IsEmpty());
  machine.put("sys/devices/system/edac/mc/mc1/ue_count", "3");
  const auto troubles = node_troubles(machine.root());
  ASSERT_THAT(troubles, SizeIs(1));
  EXPECT_THAT(troubles[0], HasSubstr("3 on mc1"));
}

TEST(NodeRates, AreRates) {
  EXPECT_THAT(memory_rates(2, 3), Each(Gt(0)));
  const TempFolder folder;
  const DiskRates disk = disk_rates(folder.path(), 20 << 20, std::chrono::seconds(60));
  EXPECT_THAT(disk.write, SizeIs(3));
  EXPECT_THAT(disk.read, SizeIs(3));
  EXPECT_THAT(shared_memory_rates(folder.path(), 2), SizeIs(2));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(NodeRates, FullDisks) {
  const SmallFileSystem small(4 << 20);
  if (!small.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  EXPECT_THROW(disk_rates(small.path(), 64 << 20, std::chrono::seconds(60)), IoError);
  EXPECT_THROW(shared_memory_rates(small.path(), 1), IoError);
  EXPECT_THROW(disk_rates(small.path() / "absent", 1, std::chrono::seconds(60)), NotFound);
  EXPECT_TRUE(std::filesystem::is_empty(small.path()));
}

}  // namespace
}  // namespace trireme
