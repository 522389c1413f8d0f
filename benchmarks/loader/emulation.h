// `trireme bench loader --emulate WORKLOAD` asks whether a file system feeds accelerators, as
// MLPerf Storage does: each rank plays one accelerator, which reads its batches ahead and sleeps
// while it would compute. All ranks meet at a barrier after each step, like replicas. The result is
// the accelerator utilization, which is the time of computing / the whole time, without the first
// step.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "benchmarks/loader/workload.h"
#include "mpi/session/mpi_session.h"

namespace trireme {

struct EmulationOptions {
  std::string workload;
  std::string accelerator = "h100";
  std::filesystem::path folder = ".";  // on the disk to measure
  // Fraction of the sizes and times. The bytes needed per second stay the same.
  double scale = 1;
  std::int64_t steps = 20;                          // after the first one
  double duration = 0;                              // seconds of steps, instead of `steps` of them
  std::int64_t data_bytes = std::int64_t{4} << 30;  // about the size of all samples
  int threads = 0;                                  // that read, per rank; 0 for the workload's
};

struct EmulationResult {
  nlohmann::ordered_json results;  // one entry {name: loader_emulation, ...}
  double utilization = 0;          // of the slowest accelerator
  EmulatedWorkload workload;       // not scaled
};

// Collective.
EmulationResult emulate_loader(const EmulationOptions& options, MpiSession& session);

}  // namespace trireme
