// Tests the reading of GPUs through NVML, with the stand-in library (library/nvml_standin.cc).
#include "src/device/nvml/gpu_monitor.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>

#include "src/device/nvml/xid.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GpuMonitorTest : public ::testing::Test {
 protected:
  // Opens the stand-in, which follows this script.
  std::unique_ptr<GpuMonitor> open(const std::string& script, std::string* why = nullptr) {
    const auto path = folder_.path() / "script";
    std::ofstream(path) << script;
    ::setenv("TRIREME_SIM_NVML_SCRIPT", path.c_str(), 1);
    ::setenv("TRIREME_SIM_DEVICES", "2", 1);
    return GpuMonitor::open(TRIREME_NVML_STANDIN, why);
  }

  TempFolder folder_;
};

TEST_F(GpuMonitorTest, ReadsHealthyGpus) {
  const auto monitor = open("");
  ASSERT_NE(monitor, nullptr);
  EXPECT_EQ(monitor->driver().version, "580.0-simulated");
  EXPECT_EQ(monitor->driver().cuda_version, 13000);
  const std::vector<GpuState> gpus = monitor->gpus();
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[1].uuid, "GPU-73696d75-6c61-7465-6420-646576696301");
  EXPECT_EQ(gpus[1].bus, "0000:02:00.0");
  EXPECT_EQ(gpus[1].most_pcie_width, 16);
  EXPECT_EQ(gpus[1].ecc_uncorrected, 0);
  EXPECT_FALSE(gpus[1].nvlink_errors.has_value());
  EXPECT_THAT(gpus[1].processes, IsEmpty());
  EXPECT_THAT(faults_of(gpus[0]), IsEmpty());
}

TEST_F(GpuMonitorTest, NamesFaults) {
  const auto monitor = open(
      "0 ecc_uncorrected 3\n0 clock_reasons 0x44\n0 pcie_width 8\n0 nvlinks 4\n0 nvlinks_down 1\n"
      "0 nvlink_errors 2\n1 remap_failed 1\n1 process 4711\n"
      "1 process_memory 1048576\n1 compute_mode 3\n1 mig 1\n");
  const std::vector<GpuState> gpus = monitor->gpus();
  const std::vector<std::string> first = faults_of(gpus[0]);
  EXPECT_THAT(first, Contains(HasSubstr("uncorrectable memory errors since the driver was loaded: "
                                        "3")));
  EXPECT_THAT(first, Contains(HasSubstr("slowed down (hw_thermal_slowdown)")));
  EXPECT_THAT(first, Contains(HasSubstr("8 of 16 lanes")));
  EXPECT_THAT(first, Contains(HasSubstr("1 of 4 NVLinks are down")));
  EXPECT_THAT(first, SizeIs(4));  // the power cap is no fault
  EXPECT_THAT(gpus[0].throttling, ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_EQ(gpus[0].nvlink_errors, 4 * 3 * 2);
  EXPECT_THAT(faults_of(gpus[1]), ElementsAre(HasSubstr("could not be remapped")));
  ASSERT_THAT(gpus[1].processes, SizeIs(1));
  EXPECT_EQ(gpus[1].processes[0].pid, 4711);
  EXPECT_EQ(gpus[1].processes[0].used_bytes, 1 << 20);
  EXPECT_TRUE(gpus[1].is_exclusive);
  EXPECT_EQ(gpus[1].mig, 1);
}

TEST_F(GpuMonitorTest, AProcessDoesNotCountItselfAsAUser) {
  GpuState gpu;
  gpu.memory_bytes = std::int64_t{80} << 30;
  gpu.used_bytes = std::int64_t{5} << 30;
  gpu.processes = {{11, std::int64_t{4} << 30}, {12, std::int64_t{1} << 29}};
  leave_out(13, gpu);
  EXPECT_THAT(use_of(gpu), HasSubstr("process 11 computes on it, with 4 GiB"));
  leave_out(11, gpu);
  EXPECT_EQ(use_of(gpu), "process 12 computes on it, with 512 MiB of its memory");
  leave_out(12, gpu);
  EXPECT_EQ(use_of(gpu), "");  // the memory that remains is the driver's
  gpu.used_bytes = std::int64_t{5} << 30;
  gpu.processes = {{11, {}}};
  leave_out(11, gpu);
  EXPECT_EQ(use_of(gpu), "");
}

TEST_F(GpuMonitorTest, KeepsWhatAGpuShowsUnderLoad) {
  GpuState idle;
  idle.sm_mhz = 210;
  idle.throttling = {"sw_power_cap"};
  GpuState loaded = idle;
  loaded.sm_mhz = 1200;
  loaded.pcie_generation = 5;
  loaded.throttling = {"sw_power_cap", "hw_thermal_slowdown"};
  add_load(loaded, idle);
  EXPECT_EQ(idle.sm_mhz, 1200);
  EXPECT_EQ(idle.pcie_generation, 5);
  EXPECT_THAT(idle.throttling, ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_THAT(faults_of(idle), ElementsAre(HasSubstr("it is too hot")));
  add_load({}, idle);
  EXPECT_EQ(idle.sm_mhz, 1200);
}

TEST_F(GpuMonitorTest, ALostGpuHasAFailure) {
  for (const char* script : {"1 handle lost\n", "1 memory_total lost\n"}) {
    const std::vector<GpuState> gpus = open(script)->gpus();
    ASSERT_THAT(gpus, SizeIs(2));
    EXPECT_EQ(gpus[0].failure, "");
    EXPECT_EQ(gpus[1].failure, "GPU is lost");
    EXPECT_THAT(faults_of(gpus[1]), ElementsAre(HasSubstr("GPU is lost: restart the node")));
  }
}

TEST_F(GpuMonitorTest, UnsupportedReadingsAreEmpty) {
  const auto monitor = open("all ecc_uncorrected unsupported\n0 energy_mj unsupported\n");
  const GpuState gpu = monitor->gpus()[0];
  EXPECT_FALSE(gpu.ecc_uncorrected.has_value());
  EXPECT_THAT(faults_of(gpu), IsEmpty());
  EXPECT_FALSE(monitor->energy_joules(gpu.uuid).has_value());
  EXPECT_FALSE(monitor->energy_joules("GPU-of-another-host").has_value());
  const auto second = monitor->gpus()[1].uuid;
  const double before = monitor->energy_joules(second).value();
  EXPECT_EQ(monitor->energy_joules(second).value() - before, 1.0);
}

TEST_F(GpuMonitorTest, ReportsCriticalErrors) {
  const auto monitor = open("1 xid 79\n");
  EXPECT_THAT(monitor->new_xids(0), IsEmpty());  // watches nothing yet
  EXPECT_FALSE(monitor->watch("GPU-of-another-host"));
  ASSERT_TRUE(monitor->watch("GPU-73696d75-6c61-7465-6420-646576696301"));
  EXPECT_THAT(monitor->new_xids(0), ElementsAre(79));
  EXPECT_THAT(monitor->new_xids(0), IsEmpty());
  EXPECT_FALSE(open("all events unsupported\n")->watch("GPU-73696d75-6c61-7465-6420-646576696300"));
}

TEST_F(GpuMonitorTest, SaysWhyThereIsNoDriver) {
  std::string why;
  EXPECT_EQ(open("all init 9\n", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("Driver Not Loaded"));
  std::string remedy;
  EXPECT_EQ(GpuMonitor::open(TRIREME_NVML_STANDIN, &why, &remedy), nullptr);
  EXPECT_THAT(remedy, HasSubstr("modprobe nvidia"));
  EXPECT_EQ(open("all init 18\n"), nullptr);
  EXPECT_EQ(GpuMonitor::open(TRIREME_NVML_STANDIN, &why, &remedy), nullptr);
  EXPECT_THAT(remedy, HasSubstr("restart the node"));
  EXPECT_EQ(GpuMonitor::open("libtrireme-has-no-such-library.so.1", &why, &remedy), nullptr);
  EXPECT_THAT(remedy, HasSubstr("libnvidia-ml1"));
  EXPECT_EQ(GpuMonitor::open("libtrireme-has-no-such-library.so.1", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("no NVIDIA driver library"));
  EXPECT_EQ(GpuMonitor::open("libc.so.6", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("is not NVIDIA's management library"));
  EXPECT_EQ(GpuMonitor::open("", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("a simulated device has none"));
}

TEST(Xid, IsFoundInTheKernelLog) {
  const std::vector<LoggedXid> found = parse_xids(
      "6,1,2,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n"
      "4,2,3,-;NVRM: Xid (PCI:0000:1B:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      "4,2,3,-;NVRM: Xid (PCI:0000:1b:00): torn\n4,2,3,-;NVRM: Xid (PCI:0000\n"
      "4,2,3,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=12, name=python\n");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].bus, "0000:1b:00.0");
  EXPECT_EQ(found[0].xid, 79);
  EXPECT_EQ(found[1].xid, 31);
  EXPECT_TRUE(is_hardware_xid(79));
  EXPECT_FALSE(is_hardware_xid(31));
  EXPECT_FALSE(is_hardware_xid(12345));
  EXPECT_EQ(xid_text(79), "XID 79 (the GPU has fallen off the bus)");
  EXPECT_EQ(xid_text(12345), "XID 12345");
}

TEST(Xid, SaysWhyTheLogCannotBeRead) {
  const TempFolder folder;
  std::ofstream(folder.path() / "log") << "NVRM: Xid (PCI:0000:01:00): 48, pid=1\n";
  EXPECT_THAT(logged_xids(folder.path() / "log"), SizeIs(1));
  std::string why;
  EXPECT_THAT(logged_xids(folder.path() / "none", &why), IsEmpty());
  EXPECT_THAT(why, HasSubstr("No such file"));
}

}  // namespace
}  // namespace trireme
