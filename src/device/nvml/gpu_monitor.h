// GpuMonitor asks NVIDIA's driver about the GPUs of this host, without a CUDA context and so
// without touching what runs on them. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/device/nvml/gpu_state.h"

namespace trireme {

class NvmlLibrary;

struct DriverFacts {
  std::string version;   // for example "580.65.06"
  int cuda_version = 0;  // the newest CUDA that it runs, 13000 for 13.0; 0 if unknown
};

class GpuMonitor {
 public:
  // library: the file name of NVML; cuda::management_library() returns it. Returns null if the
  // library or the driver is missing; `why` then receives the reason unless it is null.
  static std::unique_ptr<GpuMonitor> open(const std::string& library, std::string* why = nullptr,
                                          std::string* remedy = nullptr);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  DriverFacts driver() const;
  // Returns the state of all GPUs of the host, in the driver's order. One that the driver cannot
  // reach has a `failure`.
  std::vector<GpuState> gpus() const;
  // Returns the energy that a GPU has used since the driver was loaded, in joules; nothing if the
  // GPU does not report it.
  std::optional<double> energy_joules(const std::string& uuid) const;

  // Begins to collect the critical errors (XID) of a GPU. Returns whether the driver reports them.
  bool watch(const std::string& uuid);
  // Returns the XIDs that the driver has reported since, in their order. Waits for the first one
  // for at most `wait_ms`.
  std::vector<int> new_xids(unsigned wait_ms);

 private:
  struct Events;
  explicit GpuMonitor(std::unique_ptr<NvmlLibrary> library);
  GpuState state_of(unsigned index) const;

  std::unique_ptr<NvmlLibrary> library_;
  std::unique_ptr<Events> events_;
};

}  // namespace trireme
