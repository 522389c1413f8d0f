#include "src/train/report/energy.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "mpi/self_communicator.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// The folder has files such as those of the kernel's powercap framework.
class EnergyTest : public testing::Test {
 protected:
  void zone(const std::string& zone_name, const std::string& name, const std::string& energy) {
    const fs::path path = folder_.path() / "sys/class/powercap" / zone_name;
    fs::create_directories(path);
    std::ofstream(path / "name") << name << "\n";
    std::ofstream(path / "max_energy_range_uj") << "5000000\n";
    std::ofstream(path / "energy_uj") << energy << "\n";
  }
  TempFolder folder_;
};

TEST_F(EnergyTest, SumsPackagesAcrossTheEndOfACounter) {
  zone("intel-rapl:0", "package-0", "4000000");
  zone("intel-rapl:1", "package-1", "1000000");
  zone("intel-rapl:0:0", "core", "77");  // a part of a package
  ProcessorEnergy energy(folder_.path());
  EXPECT_EQ(energy.joules(), 0.0);
  zone("intel-rapl:0", "package-0", "500000");  // the counter has started again at 5 J
  zone("intel-rapl:1", "package-1", "3000000");
  EXPECT_NEAR(energy.joules().value(), 1.5 + 2.0, 1e-9);
}

TEST_F(EnergyTest, IsUnknownIfAPackageCannotBeRead) {
  EXPECT_FALSE(ProcessorEnergy(folder_.path()).joules());  // there is none
  zone("intel-rapl:0", "package-0", "1000");
  zone("intel-rapl:1", "package-1", "secret");
  EXPECT_FALSE(ProcessorEnergy(folder_.path()).joules());
}

// Kernels since 5.10 let only root read the counters.
TEST_F(EnergyTest, IsUnknownWithoutPermission) {
  zone("intel-rapl:0", "package-0", "1000");
  forbid_reading(folder_.path(), folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  const Unprivileged user;
  if (!user.bound()) {
    GTEST_SKIP() << "this user can read everything";
  }
  ProcessorEnergy energy(folder_.path());
  EXPECT_FALSE(energy.joules());
  EXPECT_THAT(energy.complaint(), testing::HasSubstr("energy_uj"));
  EXPECT_THAT(energy.complaint(), testing::HasSubstr("Permission denied"));
}

TEST_F(EnergyTest, IsReportedPerStepAndToken) {
  zone("intel-rapl:0", "package-0", "1000000");
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  const Stopwatch watch;
  RunEnergy energy(world, nullptr, places, folder_.path());
  zone("intel-rapl:0", "package-0", "4000000");
  StepMetrics metrics;
  energy.add_to(metrics, 2, 100);
  EXPECT_DOUBLE_EQ(metrics.cpu_joules.value(), 1.5);
  EXPECT_DOUBLE_EQ(metrics.step_tokens, 50);
  EXPECT_GT(metrics.energy_seconds, 0);
  EXPECT_LE(2 * metrics.energy_seconds, watch.seconds());
  EXPECT_FALSE(metrics.gpu_joules);
  fs::remove(folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  metrics = {};
  energy.add_to(metrics, 2, 100);
  EXPECT_FALSE(metrics.cpu_joules);
}

TEST_F(EnergyTest, CountsWhatSavesUse) {
  zone("intel-rapl:0", "package-0", "1000000");
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  RunEnergy energy(world, nullptr, places, folder_.path());
  EXPECT_EQ(energy.complaint(), "");
  energy.begin_save();
  zone("intel-rapl:0", "package-0", "2000000");
  energy.end_save(true);
  zone("intel-rapl:0", "package-0", "2500000");
  energy.begin_save();
  zone("intel-rapl:0", "package-0", "3000000");
  energy.end_save(false);  // the same save goes on
  StepMetrics metrics;
  energy.add_to(metrics, 1, 100);
  EXPECT_EQ(metrics.saves, 1);
  EXPECT_DOUBLE_EQ(metrics.cpu_save_joules.value(), 1.5);
  EXPECT_DOUBLE_EQ(metrics.cpu_joules.value(), 2);
  metrics = {};
  energy.add_to(metrics, 1, 100);
  EXPECT_EQ(metrics.saves, 0);
  EXPECT_FALSE(metrics.cpu_save_joules);
}

// What logged steps count does not matter to what the run has used.
TEST_F(EnergyTest, IsCountedFromTheBeginning) {
  zone("intel-rapl:0", "package-0", "1000000");
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  RunEnergy energy(world, nullptr, places, folder_.path());
  zone("intel-rapl:0", "package-0", "1500000");
  energy.begin_steps();
  zone("intel-rapl:0", "package-0", "4000000");
  StepMetrics metrics;
  energy.add_to(metrics, 1, 100);
  EXPECT_DOUBLE_EQ(metrics.cpu_joules.value(), 2.5);
  zone("intel-rapl:0", "package-0", "500000");  // the counter has started again at 5 J
  const EnergyUsed used = energy.used();
  EXPECT_DOUBLE_EQ(used.cpu_joules.value(), 0.5 + 2.5 + 1.5);
  EXPECT_FALSE(used.has_gpus);
  EXPECT_FALSE(used.gpu_joules);
  EXPECT_EQ(used.unknown, "");
  EXPECT_THAT(used.since, testing::MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST_F(EnergyTest, IsUnknownFromTheFirstFailureOn) {
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  EXPECT_FALSE(RunEnergy(world, nullptr, places, folder_.path()).used().cpu_joules);
  EXPECT_THAT(RunEnergy(world, nullptr, places, folder_.path()).used().unknown,
              testing::HasSubstr("has no zone of a processor package"));
  zone("intel-rapl:0", "package-0", "1000000");
  RunEnergy energy(world, nullptr, places, folder_.path());
  EXPECT_EQ(energy.used().cpu_joules, 0.0);
  zone("intel-rapl:0", "package-0", "secret");
  EXPECT_FALSE(energy.used().cpu_joules);
  zone("intel-rapl:0", "package-0", "2000000");
  const EnergyUsed used = energy.used();
  EXPECT_FALSE(used.cpu_joules);
  EXPECT_THAT(used.unknown, testing::HasSubstr("energy_uj: it holds no number"));
}

// A driver's counter that advances ten times a second, read every 35 ms: 0, 0, 70 J, ...
TEST(PowerWindow, IsAMeanOverASecondOrMore) {
  PowerWindow power;
  double counter = 0;
  for (int step = 1; step <= 100; ++step) {
    const double now = 70 * std::floor(0.035 * step / 0.1);
    power.add(now - std::exchange(counter, now), 0.035);
    if (step <= 28) {
      EXPECT_FALSE(power.watts()) << step;
    } else {
      EXPECT_NEAR(power.watts().value(), 700, 70) << step;
    }
  }
  power.begin();
  EXPECT_FALSE(power.watts());
  power.add(600, 2);
  EXPECT_DOUBLE_EQ(power.watts().value(), 300);
}

// Nothing is said about GPUs that cannot be read, but that.
TEST_F(EnergyTest, OfGpusThatCannotBeReadIsUnknown) {
  zone("intel-rapl:0", "package-0", "1000000");
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  std::vector<RankDevice> devices(1);
  devices[0].is_gpu = true;
  const EnergyUsed used = RunEnergy(world, &devices, places, folder_.path()).used();
  EXPECT_EQ(used.cpu_joules, 0.0);
  EXPECT_TRUE(used.has_gpus);
  EXPECT_FALSE(used.gpu_joules);
  EXPECT_THAT(used.unknown, testing::HasSubstr("GPU of rank 0: "));
}

TEST_F(EnergyTest, SaysWhichCounterCannotBeReadAndWhy) {
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  EXPECT_THAT(RunEnergy(world, nullptr, places, folder_.path()).complaint(),
              testing::AllOf(testing::HasSubstr("processors of "),
                             testing::HasSubstr("sys/class/powercap has no zone")));
  zone("intel-rapl:0", "package-0", "secret");
  EXPECT_THAT(ProcessorEnergy(folder_.path()).complaint(),
              testing::EndsWith("intel-rapl:0/energy_uj: it holds no number"));
  fs::remove(folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  EXPECT_THAT(ProcessorEnergy(folder_.path()).complaint(),
              testing::EndsWith("energy_uj: No such file or directory"));
}

TEST(EnergyOfAStep, IsKnownOnlyIfThatOfAllDevicesIs) {
  StepMetrics m;
  m.cpu_joules = 2;
  EXPECT_EQ(energy_per_step(m), 2.0);
  m.device = "NVIDIA H100";
  EXPECT_FALSE(energy_per_step(m));
  m.gpu_joules = 3;
  EXPECT_EQ(energy_per_step(m), 5.0);
  m.cpu_joules.reset();
  EXPECT_FALSE(energy_per_step(m));
}

}  // namespace
}  // namespace trireme
