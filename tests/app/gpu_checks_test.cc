// Tests how doctor and health judge GPUs that are described by plain values.
#include "src/app/site/gpu_checks.h"

#include <fstream>
#include <map>

#include <gmock/gmock.h>

#include "src/app/site/gpu_measures.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class GpuChecksTest : public testing::Test {
 protected:
  GpuChecksTest() {
    here_.host = "n1";
    here_.started = here_.ranks = here_.visible = 2;
    here_.versions = {13000, 13000};
    here_.driver = {"580.65.06", 13000};
    here_.root = folder_.path();
    for (int i = 0; i < 2; ++i) {
      GpuState gpu;
      gpu.index = i;
      gpu.name = "H100";
      gpu.uuid = "GPU-1";
      gpu.persistence = 1;
      here_.gpus.push_back(gpu);
    }
  }
  std::vector<Finding> check(bool share_device = false) const {
    return check_gpus(here_, share_device, [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    });
  }
  // Returns the only finding.
  Finding only() const {
    const std::vector<Finding> found = check();
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Finding{} : found.front();
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((folder_.path() / path).parent_path());
    std::ofstream(folder_.path() / path) << text << "\n";
  }

  TempFolder folder_;
  GpuSurroundings here_;
  std::map<std::string, std::string> variables_;
};

TEST_F(GpuChecksTest, FindsNothingOnAHealthyHost) { EXPECT_THAT(check(), IsEmpty()); }

TEST_F(GpuChecksTest, WarnsOfWhatSlowsCommunicationDown) {
  here_.without_peer_access = {{0, 1}};
  EXPECT_THAT(only().what, HasSubstr("no peer access within 1 pair of GPUs, such as 0 and 1"));
  here_.without_peer_access.clear();
  variables_ = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "0"}};
  EXPECT_THAT(only().what, HasSubstr("NCCL_IB_DISABLE=1: NCCL uses TCP"));
}

TEST_F(GpuChecksTest, LooksForGpuDirect) {
  write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  EXPECT_THAT(only().what, HasSubstr("GPUDirect RDMA is not available"));
  write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64");
  EXPECT_THAT(check(), IsEmpty());
  write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN");
  EXPECT_THAT(only().what, HasSubstr("port 1 of mlx5_1 is not active (1: DOWN)"));
}

TEST_F(GpuChecksTest, NamesHowGpusAreUsed) {
  here_.mps = "/tmp/nvidia-mps";
  EXPECT_THAT(check(/*share_device=*/true).at(0).what,
              HasSubstr("multi-process service runs (/tmp/nvidia-mps)"));
  here_.mps = "";
  here_.gpus[1].is_prohibited = true;
  EXPECT_EQ(only().code, ExitCode::device);
  here_.gpus[1].is_prohibited = false;
  here_.gpus[1].is_exclusive = true;
  here_.gpus[1].processes = {{4711, std::int64_t{3} << 30}};
  EXPECT_THAT(only().what, HasSubstr("process 4711 computes on it, with 3 GiB of its memory"));
  EXPECT_THAT(only().remedy, HasSubstr("the compute mode is exclusive"));
  EXPECT_EQ(only().code, ExitCode::device);
  EXPECT_THAT(only().what, HasSubstr("ranks cannot use it"));
  here_.used = {"GPU-of-a-rank"};
  EXPECT_EQ(only().severity, Severity::warning);
  here_.used.clear();
  here_.gpus[1].is_exclusive = false;
  EXPECT_EQ(only().severity, Severity::warning);
  here_.gpus[1].is_exclusive = true;
  here_.gpus[1].processes.clear();
  here_.gpus[1].memory_bytes = std::int64_t{80} << 30;
  here_.gpus[1].used_bytes = std::int64_t{2} << 30;  // as much as a driver may take
  EXPECT_THAT(check(), IsEmpty());
  here_.gpus[1].used_bytes = std::int64_t{12} << 30;
  EXPECT_THAT(only().what, HasSubstr("12 GiB of its 80 GiB are in use, by no process"));
  EXPECT_EQ(only().remedy, "end it, or take another node");
  here_.gpus[1].used_bytes = 0;
  here_.ranks = 1;
  EXPECT_THAT(only().what, HasSubstr("2 GPUs for 1 rank: one is idle"));
}

TEST_F(GpuChecksTest, JudgesOnlyGpusThatTheLaunchSees) {
  std::vector<GpuState> all(4);
  for (int i = 0; i < 4; ++i) {
    all[static_cast<std::size_t>(i)].index = i;
    all[static_cast<std::size_t>(i)].uuid = fmt::format("GPU-{}", i);
    all[static_cast<std::size_t>(i)].bus = fmt::format("0000:0{}:00.0", i);
  }
  all[1] = {};
  all[1].index = 1;
  all[1].failure = "GPU is lost";
  all[3].is_prohibited = true;
  here_.gpus.clear();
  keep_seen(all, "GPU-0 0000:00:00.0 MIG-a-slice 0000:02:00.0 ", here_);
  ASSERT_EQ(here_.gpus.size(), 2U);
  EXPECT_EQ(here_.gpus[1].index, 2);
  EXPECT_EQ(only().severity, Severity::warning);
  EXPECT_THAT(only().what, HasSubstr("GPU 1, which this launch does not see: GPU is lost"));
  here_.gpus.clear();
  here_.lost_elsewhere.clear();
  keep_seen(all, "GPU-0 0000:00:00.0 GPU-1 0000:01:00.0 ", here_);  // 1 has lost its name, too
  EXPECT_EQ(only().code, ExitCode::device);
}

TEST_F(GpuChecksTest, SaysWhatToDoAboutTheDriver) {
  here_.no_driver = "libnvidia-ml.so.1: Driver Not Loaded";
  here_.driver_remedy = "modprobe nvidia";
  EXPECT_EQ(only().remedy, "modprobe nvidia");
}

TEST_F(GpuChecksTest, CountsPlannedRanks) {
  here_.started = 1;
  here_.ranks = 2;
  EXPECT_THAT(check(), IsEmpty());
  here_.ranks = 4;
  EXPECT_THAT(check(/*share_device=*/true), IsEmpty());
  EXPECT_THAT(only().what, HasSubstr("this host has 2 GPUs for 4 planned ranks"));
  EXPECT_EQ(only().severity, Severity::error);
  EXPECT_EQ(only().code, ExitCode::usage);
  here_.visible = 1;
  EXPECT_THAT(only().what, HasSubstr("this process sees 1 GPU for 4 planned ranks"));
  EXPECT_EQ(only().severity, Severity::warning);
}

TEST_F(GpuChecksTest, HealthKeepsWhatShouldNotChange) {
  here_.gpus[0].most_pcie_generation = 5;
  here_.gpus[0].pcie_width = 16;
  here_.gpus[0].nvlinks_up = 18;
  here_.gpus[0].most_sm_mhz = 1980;
  here_.gpus[0].ecc_corrected = 12;
  here_.gpus[1].failure = "GPU is lost";
  Measures measures;
  std::vector<std::string> complaints;
  add_gpu_states(here_.gpus, measures, complaints);
  EXPECT_EQ(measures.facts["GPUs"], "2");
  EXPECT_EQ(measures.facts["GPU 0"],
            "H100, PCIe 5 x16, 18 of 18 NVLinks, up to 1980 MHz, memory unknown MHz");
  EXPECT_EQ(measures.counters["GPU 0 corrected memory errors"], 12);
  EXPECT_FALSE(measures.facts.contains("GPU 1"));  // so it differs from the baseline
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_THAT(complaints[0], HasSubstr("GPU is lost"));
  const Measures before = measures;
  measures.counters["GPU 0 corrected memory errors"] = 400;
  const std::vector<std::string> worse = compare(measures, before, 0.9);
  ASSERT_EQ(worse.size(), 1U);
  EXPECT_THAT(worse[0], HasSubstr("388 errors since the baseline was saved"));
  EXPECT_THAT(worse[0], HasSubstr("reset the GPU"));
  EXPECT_THAT(with_identity(worse[0], before, here_.gpus),
              HasSubstr("GPU 0 (H100, GPU-1, no bus id) corrected memory errors: 388 errors"));
  EXPECT_EQ(with_identity("GPU 0 products fp32: 1", before, here_.gpus), "GPU 0 products fp32: 1");
}

TEST_F(GpuChecksTest, HealthMissesNvlinksThatOtherGpusHave) {
  here_.gpus[0].nvlinks_up = 18;
  here_.gpus[1].nvlinks_down = 18;
  Measures measures;
  std::vector<std::string> complaints;
  add_gpu_states(here_.gpus, measures, complaints);
  ASSERT_EQ(complaints.size(), 1U);
  EXPECT_THAT(complaints[0], HasSubstr("all of its 18 NVLinks are down"));
  EXPECT_THAT(only().what, HasSubstr("all of its 18 NVLinks are down"));
  here_.gpus[1].name = "A10";  // another kind may have no bridge
  EXPECT_THAT(check(), IsEmpty());
}

TEST_F(GpuChecksTest, HealthComplainsOnceOfEachXidOfBrokenHardware) {
  here_.gpus[0].bus = "0000:1b:00.0";
  write("dev/kmsg",
        "6,1,2,-;NVRM: Xid (PCI:0000:1B:00): 79, pid=1, GPU has fallen off the bus.\n"
        "6,2,3,-;NVRM: Xid (PCI:0000:1B:00): 79, pid=2, GPU has fallen off the bus.\n"
        "6,3,4,-;NVRM: Xid (PCI:0000:1B:00): 31, pid=2, a program's own error\n"
        "6,4,5,-;NVRM: Xid (PCI:0000:3D:00): 48, pid=3, a GPU that the driver no longer has");
  NodeExamination result;
  add_logged_xids(folder_.path() / "dev/kmsg", here_.gpus, result);
  ASSERT_EQ(result.complaints.size(), 2U);
  EXPECT_THAT(result.complaints[0], HasSubstr("GPU 0 (H100, GPU-1, 0000:1b:00.0): XID 79"));
  EXPECT_THAT(result.complaints[0], HasSubstr("reset the GPU or restart the node"));
  EXPECT_THAT(result.complaints[1], HasSubstr("GPU at 0000:3d:00.0: XID 48"));
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_F(GpuChecksTest, HealthNotesThatTheKernelsLogCannotBeRead) {
  NodeExamination result;
  add_logged_xids(folder_.path() / "dev/kmsg", here_.gpus, result);
  EXPECT_THAT(result.complaints, IsEmpty());
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_THAT(result.notes[0], HasSubstr("XIDs: cannot read"));
}

}  // namespace
}  // namespace trireme
