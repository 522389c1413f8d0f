// MemoryPlan is the memory that a rank takes from its host or from its CUDA device, in the parts
// that a run reports. It is predicted before anything is allocated; what a run has taken is
// reported in the same form. Plain values and pure functions of configuration and layout.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/train/memory/step_memory.h"
#include "src/train/run/layout.h"

namespace trireme {

// MemoryPlace says whose memory is meant.
enum class MemoryPlace {
  host,            // the host's, if the host computes
  device,          // that of a rank's CUDA device
  host_of_device,  // the host's, if a CUDA device computes
};

struct MemoryPlan {
  std::int64_t parameters = 0;   // working copies and masters
  std::int64_t gradients = 0;    // peak, as all below
  std::int64_t optimizer = 0;    // optimizer state: moments, averages
  std::int64_t activations = 0;  // what forward saves for backward, and the layers' workspace
  // Activations between ranks; ZeRO 3: gathered working copies; on a device, also NCCL's memory.
  std::int64_t communication = 0;
  // Copies for checkpoints: in the node's memory, being written to disk, or of the device's memory.
  std::int64_t snapshot = 0;
  std::int64_t program = 0;  // code, libraries, transports, and the kernels' own workspace

  static constexpr int kParts = 7;
  std::array<std::int64_t, kParts> parts() const;
  static MemoryPlan of(const std::array<std::int64_t, kParts>& parts);
  // Returns "parameters", "gradients", ...
  static const std::array<const char*, kParts>& names();

  std::int64_t total() const;
  // Returns the bytes that the process will take beyond those that it has before the run is built.
  std::int64_t to_come(std::int64_t resident_at_start) const { return total() - resident_at_start; }
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// Returns what an engine takes, which lies where it computes.
MemoryPlan plan_of_step(const StepMemory& step);

// resident_at_start: bytes of this process in that place before the run is built. Those of a device
// are not free any more when the run is built, and count as 0.
MemoryPlan plan_memory(const RunConfig& config, const Layout& layout, int rank,
                       std::int64_t resident_at_start, MemoryPlace place = MemoryPlace::host);
// Returns the plans of all ranks. resident_at_start: by rank. Ranks that differ in their replica
// alone get the plan of the first replica, although the rounding of ZeRO's blocks can differ.
std::vector<MemoryPlan> plan_memory_of_all(const RunConfig& config, const Layout& layout,
                                           const std::vector<std::int64_t>& resident_at_start,
                                           MemoryPlace place = MemoryPlace::host);

// MemoryTable is a table in MiB or GiB, at most 76 columns wide, with a line of headings and one
// per rank. With more than 16 ranks, it has only the rank with most memory and a summary.
struct MemoryTable {
  std::string unit;
  std::vector<std::string> lines;
};
MemoryTable memory_table(const std::vector<MemoryPlan>& ranks);
nlohmann::json to_json(const MemoryPlan& plan);

}  // namespace trireme
