#include "src/train/report/energy.h"

#include <fstream>

#include <gmock/gmock.h>

#include "mpi/self_communicator.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Files such as those of the kernel's powercap framework.
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
  zone("intel-rapl:0", "package-0", "500000");  // has started again at 5 J
  zone("intel-rapl:1", "package-1", "3000000");
  EXPECT_NEAR(energy.joules().value(), 1.5 + 2.0, 1e-9);
}

TEST_F(EnergyTest, IsUnknownIfAPackageCannotBeRead) {
  EXPECT_FALSE(ProcessorEnergy(folder_.path()).joules());  // there is none
  zone("intel-rapl:0", "package-0", "1000");
  zone("intel-rapl:1", "package-1", "secret");
  EXPECT_FALSE(ProcessorEnergy(folder_.path()).joules());
}

TEST_F(EnergyTest, IsReportedPerStepAndToken) {
  zone("intel-rapl:0", "package-0", "1000000");
  SelfCommunicator world;
  std::vector<RankPlace> places(1);
  RunEnergy energy(world, nullptr, places, folder_.path());
  zone("intel-rapl:0", "package-0", "4000000");
  StepMetrics metrics;
  energy.add_to(metrics, 2, 100);
  EXPECT_DOUBLE_EQ(metrics.cpu_joules.value(), 1.5);
  EXPECT_DOUBLE_EQ(metrics.step_tokens, 50);
  EXPECT_FALSE(metrics.gpu_joules);
  fs::remove(folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  metrics = {};
  energy.add_to(metrics, 2, 100);
  EXPECT_FALSE(metrics.cpu_joules);
}

}  // namespace
}  // namespace trireme
