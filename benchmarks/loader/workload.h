// The workloads whose reading `trireme bench loader --emulate` repeats: sizes of samples and times
// of computing, from MLPerf Storage's configurations (github.com/mlcommons/storage,
// configs/dlio/workload/*_h100.yaml and *_a100.yaml). Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme {

struct EmulatedWorkload {
  std::string name;
  std::string accelerator;
  double sample_bytes = 0;         // the mean
  double sample_bytes_spread = 0;  // standard deviation
  std::int64_t samples_per_file = 1;
  std::int64_t batch = 1;      // samples per accelerator and step
  double compute_seconds = 0;  // of a step
  int threads = 1;             // that read, per accelerator
  // The least fraction of the time that the accelerator computes, for MLPerf Storage to count the
  // run.
  double least_utilization = 0.9;

  // Returns the bytes that an accelerator needs per second.
  double needed_bytes_per_s() const {
    return static_cast<double>(batch) * sample_bytes / compute_seconds;
  }
  // Returns the size of a sample, which depends on its number only: normally distributed, but at
  // least a tenth of the mean and 64 bytes.
  std::int64_t bytes_of(std::int64_t sample) const;
  // Returns the workload with samples and compute times of this fraction, which needs the same
  // bytes per second.
  EmulatedWorkload scaled(double fraction) const;
};

std::vector<std::string> workload_names();
// Throws ConfigError if there are no figures of the workload on this accelerator.
EmulatedWorkload find_workload(const std::string& name, const std::string& accelerator);

}  // namespace trireme
