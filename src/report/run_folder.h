// Reads what a run has left in its folder, for a report. Each file may be missing, damaged or still
// be written; what cannot be used is said in `remarks` and never made up for. Changes nothing.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "slurm/journal/account.h"
#include "src/base/config_tree.h"
#include "src/base/run_text.h"
#include "src/report/columns.h"
#include "src/trace/trace_summary.h"

namespace trireme {

// RankMemory holds the parts of a rank's memory as the run measured them, in bytes.
struct RankMemory {
  std::vector<std::string> parts;          // names, the same for all ranks
  std::vector<std::vector<double>> bytes;  // [rank][part]
};

// RunForecast is what the planner predicted for a run's steps, beside what the run measured.
struct RunForecast {
  std::string cluster;             // name of the cluster file's machine
  double residual_percent = 0;     // typical error that the file states
  std::vector<std::string> parts;  // of a step
  std::vector<double> predicted;   // seconds, by part
  std::vector<double> measured;
  double predicted_memory = 0;  // bytes of the rank that has most
  double measured_memory = 0;
  std::vector<std::string> doubts;  // why the file may not fit the run
};

struct RunFault {
  double time = 0;  // seconds since the epoch
  std::string what;
};

// RunAttempt is one start of the ranks, as the journal tells it.
struct RunAttempt {
  double began = 0;             // seconds since the epoch
  std::optional<double> ended;  // nothing if the journal does not say
};

// empty: without a whole event. unusable: as the remarks say.
enum class JournalFile : std::uint8_t { none, unusable, empty, used };

struct RunFolder {
  std::filesystem::path path;
  std::string name;                  // run.name, or else the folder's name
  RunColumns metrics;                // empty if there is no metrics.jsonl
  std::exception_ptr metrics_error;  // why metrics.jsonl, which is there, cannot be used
  std::vector<double> restarts;      // steps at which later starts resumed
  std::optional<Account> account;    // of the journal, if there is one
  DamagedLines damaged_journal;      // lines of the journal that are left out
  JournalFile journal = JournalFile::none;
  std::vector<RunAttempt> attempts;   // as many as in the account
  double journal_began = 0;           // time of the first event
  std::optional<TraceSummary> trace;  // with run.trace
  std::optional<RankMemory> memory;
  std::optional<RunForecast> forecast;  // with plan.cluster
  std::vector<RunFault> warnings;       // stragglers and spikes in the log of rank 0
  std::vector<std::pair<std::string, std::string>> facts;  // of the start: ranks, host, layout, ...
  std::string config;                                      // the text of config.yaml
  std::vector<ConfigEntry> settings;                       // what it says; empty if damaged
  std::string config_error;                                // why it is damaged, or ""
  std::string exit_reason;                                 // a sentence; empty if there is none
  bool is_done = false;
  std::vector<std::string> remarks;

  // Returns the number of later starts that the log of rank 0 has: those of `restarts` before which
  // the run had logged a step of its own. A first start may resume from another run's checkpoint.
  std::int64_t restarts_in_log() const;
};

// Returns whether the folder has files of a run.
bool is_run_folder(const std::filesystem::path& path);
// Throws NotFound if there is no such folder, PolicyError or IoError if files cannot be read.
// is_running: whether the run is known to be at work.
RunFolder read_run_folder(const std::filesystem::path& path, bool is_running,
                          const TextReader& reader = plain_reader());

// Prints a warning on stderr for each file of the run that has damaged lines.
void warn_of_damaged_lines(const RunFolder& run);

}  // namespace trireme
