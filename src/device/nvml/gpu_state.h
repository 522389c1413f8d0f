// GpuState is what NVIDIA's driver reports about one GPU, whether or not this process can compute
// on it. Plain values; those that the driver or the GPU does not report are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

using Reading = std::optional<std::int64_t>;

struct GpuProcess {
  std::int64_t pid = 0;  // as this host numbers processes
  Reading used_bytes;    // of the GPU's memory
};

struct GpuState {
  int index = 0;        // as nvidia-smi counts
  std::string name;     // for example "NVIDIA H100 80GB HBM3"
  std::string uuid;     // for example "GPU-5b2e..."
  std::string bus;      // PCI address, for example "0000:1b:00.0"
  std::string failure;  // why the driver cannot reach the GPU; empty if it can

  Reading memory_bytes, used_bytes;
  Reading persistence;        // 1: the driver stays loaded while nobody uses the GPU
  Reading mig;                // 1: split into slices
  bool is_exclusive = false;  // one process at a time may use it
  bool is_prohibited = false;
  Reading ecc_corrected, ecc_uncorrected;  // since the driver was loaded
  Reading rows_remapped;                   // because of uncorrectable errors, over its life
  bool remap_is_pending = false;           // a row is remapped at the next reset
  bool remap_has_failed = false;           // no spare row is left
  Reading sm_mhz, most_sm_mhz, memory_mhz, most_memory_mhz;
  // Why the clocks are low, such as "hw_thermal_slowdown"; the idle state is left out.
  std::vector<std::string> throttling;
  Reading pcie_generation, most_pcie_generation;  // the present one falls while the GPU is idle
  Reading pcie_width, most_pcie_width;            // lanes
  Reading pcie_replays;
  int nvlinks_up = 0, nvlinks_down = 0;
  Reading nvlink_errors;              // CRC errors, replays and recoveries of all links
  std::vector<GpuProcess> processes;  // that compute on it

  // Returns, for example, "GPU 3 (NVIDIA H100 80GB HBM3, GPU-5b2e..., 0000:1b:00.0)".
  std::string text() const;
};

// Adds what was read while the GPU computed: the reasons for low clocks, the highest clocks and
// generation of PCIe, which all fall while it is idle, and that it could not be reached.
void add_load(const GpuState& under_load, GpuState& gpu);

// Removes a process and its memory from the state.
void leave_out(std::int64_t pid, GpuState& gpu);

// Returns what the processes in the list do with the GPU, for example "process 4711 computes on it,
// with 12 GiB of its memory". Without processes, as in a container that does not show those of
// others, says how much memory is in use if it is more than a driver takes; otherwise empty.
std::string use_of(const GpuState& gpu);

// Returns faults that are evident without a comparison: a lost GPU, uncorrectable errors, rows that
// cannot be remapped, clocks that the hardware slows down, lanes that are missing, and NVLinks of
// which some are down. One line each, beginning with text(). node: all GPUs of the host; with them,
// a GPU is at fault, too, if all of its NVLinks are down but those of a like one are up.
std::vector<std::string> faults_of(const GpuState& gpu, const std::vector<GpuState>& node = {});

}  // namespace trireme
