// MemoryPlan is the memory that a rank takes from its host, in the parts that a run reports. It is
// predicted before anything is allocated; what a run has taken is reported in the same form. Plain
// values and pure functions of configuration and layout.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/train/run/layout.h"

namespace trireme {

struct MemoryPlan {
  std::int64_t parameters = 0;     // working copies and masters
  std::int64_t gradients = 0;      // peak, as all below
  std::int64_t optimizer = 0;      // optimizer state: moments, averages
  std::int64_t activations = 0;    // what forward saves for backward, and the layers' workspace
  std::int64_t communication = 0;  // activations between ranks; ZeRO 3: gathered working copies
  std::int64_t snapshot = 0;       // of checkpoints: in memory or being written to disk
  std::int64_t program = 0;        // code, libraries, transports, and the kernels' own workspace

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

// resident_at_start: bytes of this process before the run is built.
MemoryPlan plan_memory(const RunConfig& config, const Layout& layout, int rank,
                       std::int64_t resident_at_start);
// Returns the plans of all ranks. resident_at_start: by rank. Ranks that differ in their replica
// alone get the plan of the first replica, although the rounding of ZeRO's blocks can differ.
std::vector<MemoryPlan> plan_memory_of_all(const RunConfig& config, const Layout& layout,
                                           const std::vector<std::int64_t>& resident_at_start);

// MemoryTable is a table in MiB or GiB, at most 76 columns wide, with a line of headings and one
// per rank. With more than 16 ranks, it has only the rank with most memory and a summary.
struct MemoryTable {
  std::string unit;
  std::vector<std::string> lines;
};
MemoryTable memory_table(const std::vector<MemoryPlan>& ranks);
nlohmann::json to_json(const MemoryPlan& plan);

}  // namespace trireme
