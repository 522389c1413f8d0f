// OpenMetricsFile keeps a text file with the latest metrics of a run, which node_exporter's
// textfile collector hands to Prometheus. Rank 0 owns one; the main thread uses it. Readers see the
// old or the new contents, never a part. The file never stops a run: a failed write is reported by
// the caller once, and later writes are tried as before. docs/metrics.md describes the metrics.
//
// All metrics are gauges without time stamps, so the text is valid OpenMetrics 1.0 and valid in the
// older text format, which is what node_exporter reads. Counters are declared differently in both,
// and the tokens of a run may fall when it rewinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/run_text.h"
#include "src/base/stopwatch.h"
#include "src/train/report/metrics.h"
#include "src/train/run/run_config.h"

namespace trireme {

// PastTime says what earlier logged steps of a run took, from its metrics.jsonl and journal.jsonl.
struct PastTime {
  double began = 0;       // seconds since the epoch; 0 if nothing was logged yet
  double useful = 0;      // seconds in the steps that count, without the stalls of saves
  std::int64_t step = 0;  // last logged step
  // Number of earlier starts of ranks; nothing for a run that `trireme launch` did not start.
  std::optional<std::int64_t> restarts = {};
};
// Lines that are torn or no steps are ignored. Never throws because of what the files hold.
PastTime past_time_of(const std::filesystem::path& run, const TextReader& reader = plain_reader());

// RunGauges holds the values of one file.
struct RunGauges {
  std::string run;        // label: run.name, or else run.dir
  std::string slurm_job;  // label; empty outside Slurm
  StepMetrics metrics;    // of the latest logged step
  std::optional<double> validation_loss;
  std::int64_t step = 0;  // latest done step, which need not be logged
  std::int64_t steps = 0;
  std::int64_t ranks = 0;
  bool is_active = true;  // whether the training loop is still at work
  double now = 0;         // seconds since the epoch
  PastTime past;          // including this start's logged steps
  EnergyConfig factors;
};

// Returns the text of a file. Values that are unknown are left out.
std::string openmetrics_text(const RunGauges& gauges);

// Returns whether something lies there that no run has written, and that a run would replace.
// Throws PolicyError or IoError if it cannot be read.
bool holds_foreign_metrics(const std::filesystem::path& file);

class OpenMetricsFile {
 public:
  // Precondition: metrics.openmetrics is set. Reads the files of the run's earlier starts.
  OpenMetricsFile(const RunConfig& config, std::int64_t ranks,
                  const TextReader& reader = plain_reader());

  // Takes over the metrics of a logged step.
  void note(const StepMetrics& metrics);
  // Call after each step. Returns what went wrong with the first write that failed, otherwise "".
  std::string tick(std::int64_t step);
  // Writes once more and says that the run is no longer active.
  std::string finish();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::string write();

  std::filesystem::path path_;
  double every_;
  RunGauges gauges_;
  std::optional<Stopwatch> since_;  // the latest write; empty before the first one
  bool has_failed_ = false;
};

}  // namespace trireme
