// Formats results as IOR 4 does (src/ior-output.c), so that what reads IOR's output reads this:
// the options, a row per phase and repetition, the summary, and CSV. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/io/io_layout.h"

namespace trireme {

// IorSetup is what the table says about a run.
struct IorSetup {
  IoLayout layout;
  std::string api;   // IOR's name: "POSIX"
  std::string file;  // the test file, or its begin with one file per process
  int nodes = 1;
  int ranks_per_node = 1;
  int shift = 0;  // ranks between writer and reader; 0 without -C
  int task_offset = 1;
  std::int64_t repetitions = 1;
  double seconds = 0;  // to repeat for, instead of a number; 0 for none
  double stonewall_seconds = 0;
};

// IorPhase is one write or read of all ranks. Times are in seconds, from the first rank's begin to
// the last rank's end.
struct IorPhase {
  bool writes = false;
  int repetition = 0;
  std::int64_t bytes = 0;  // moved by all ranks
  double latency = 0;      // the least of the ranks' mean times per transfer
  double open = 0;
  double transfer = 0;
  double close = 0;
  double total = 0;

  double rate() const { return static_cast<double>(bytes) / total; }  // bytes per second
};

std::string ior_options(const IorSetup& setup);
// Returns the two lines above the rows.
std::string ior_header();
std::string ior_row(const IorSetup& setup, const IorPhase& phase);
// Returns "Max Write: ...", "Max Read: ..." and the summary of all tests.
std::string ior_summary(const IorSetup& setup, const std::vector<IorPhase>& phases);
std::string ior_csv(const IorSetup& setup, const std::vector<IorPhase>& phases);

}  // namespace trireme
