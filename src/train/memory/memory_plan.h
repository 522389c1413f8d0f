// MemoryPlan: what a rank takes of its host's memory, predicted before anything is allocated, in
// the parts that a run reports; what a rank has taken is reported alike. Plain values and pure
// functions of configuration and layout.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/train/run/layout.h"

namespace trireme {

struct MemoryPlan {
  std::int64_t parameters = 0;     // computes and masters
  std::int64_t gradients = 0;      // the most at one time, as all below
  std::int64_t optimizer = 0;      // its state: moments, averages
  std::int64_t activations = 0;    // what forward keeps for backward, and the layers' workspace
  std::int64_t communication = 0;  // activations between ranks; ZeRO 3: gathered computes
  std::int64_t snapshot = 0;       // of checkpoints: on the way to disk, and in memory
  std::int64_t program = 0;        // code, libraries, transports, the kernels' own workspace

  static constexpr int kParts = 7;
  std::array<std::int64_t, kParts> parts() const;
  static MemoryPlan of(const std::array<std::int64_t, kParts>& parts);
  // "parameters", "gradients", ...
  static const std::array<const char*, kParts>& names();

  std::int64_t total() const;
  // What the process takes beyond what it holds before the run is built.
  std::int64_t to_come(std::int64_t resident_at_start) const { return total() - resident_at_start; }
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

// resident_at_start: bytes of this process before the run is built.
MemoryPlan plan_memory(const RunConfig& config, const Layout& layout, int rank,
                       std::int64_t resident_at_start);
// Of every rank. The same where replicas differ by a block's rounding: the first one's.
std::vector<MemoryPlan> plan_memory_of_all(const RunConfig& config, const Layout& layout,
                                           const std::vector<std::int64_t>& resident_at_start);

// A table in MiB or GiB, at most 76 columns wide: a line of headings and a line per rank; with more
// than 16 ranks only the rank that takes most, and a summary.
struct MemoryTable {
  std::string unit;
  std::vector<std::string> lines;
};
MemoryTable memory_table(const std::vector<MemoryPlan>& ranks);
nlohmann::json to_json(const MemoryPlan& plan);

}  // namespace trireme
