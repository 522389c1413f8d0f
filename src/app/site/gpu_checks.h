// Makes the checks of `trireme doctor` that concern the GPUs of a host: its driver, its GPUs, and
// what keeps NCCL from using its fast paths. Each finding says what was found, why it matters,
// and what to do.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "slurm/doctor/finding.h"
#include "slurm/job/job_environment.h"
#include "src/device/cuda_device.h"
#include "src/device/nvml/gpu_monitor.h"

namespace trireme {

// GpuSurroundings holds the facts about a host's GPUs that the checks judge.
struct GpuSurroundings {
  std::string host;
  int started = 1;                                       // ranks of the doctor on this host
  int ranks = 1;                                         // of the run on this host
  int visible = 0;                                       // GPUs that this process sees
  std::vector<std::pair<int, int>> without_peer_access;  // pairs of those
  cuda::CudaVersions versions;
  DriverFacts driver;
  std::vector<GpuState> gpus;  // as the driver reports those that ranks of this host see
  // UUIDs and PCI addresses of the GPUs that the ranks get. Empty: unknown, so that any may be one.
  std::set<std::string> used;
  // Of GPUs that no rank sees, those that the driver cannot reach.
  std::vector<GpuState> lost_elsewhere;
  std::string no_driver;             // why the driver reports nothing; empty if it does
  std::string driver_remedy;         // what to do about it
  std::string mps;                   // the folder of the multi-process service; empty without one
  std::filesystem::path root = "/";  // the folder that contains proc and sys
};

// Returns the UUIDs and PCI addresses of the GPUs that this process sees, separated by blanks.
std::string seen_gpus();

// Collects the facts. started, ranks: how many ranks the doctor and the planned run have here.
// seen: what the ranks of this host see, as seen_gpus() returns it.
GpuSurroundings gpu_surroundings(const std::string& host, int started, int ranks,
                                 const std::string& seen);
// Keeps those of `all` that the ranks see.
void keep_seen(const std::vector<GpuState>& all, const std::string& seen, GpuSurroundings& here);

// Checks what was found. share_device: as in the configuration.
std::vector<Finding> check_gpus(const GpuSurroundings& here, bool share_device,
                                const SlurmEnvironment& environment);
// Checks variables of NCCL and CUDA that change how fast or how a run computes.
std::vector<Finding> check_gpu_variables(const SlurmEnvironment& environment,
                                         const std::string& host);

// Returns, for example, "8 GPUs (NVIDIA H100 80GB HBM3), driver 580.65.06 for CUDA 13.0, CUDA 13.0,
// cuBLASLt 13.1.0, NCCL 2.28.9".
std::string gpu_summary(const GpuSurroundings& here);

}  // namespace trireme
