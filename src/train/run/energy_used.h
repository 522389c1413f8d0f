// EnergyUsed says how many joules a run has used since a time, as far as counters could be read.
// What could not is missing, never estimated.
#pragma once

#include <optional>
#include <string>

namespace trireme {

struct EnergyUsed {
  std::string since;                 // "2026-01-31T12:00:00Z"
  std::optional<double> cpu_joules;  // of the processors of all hosts
  bool has_gpus = false;
  std::optional<double> gpu_joules;  // of all GPUs
  std::string unknown;               // which counters cannot be read and why, or ""
};

}  // namespace trireme
