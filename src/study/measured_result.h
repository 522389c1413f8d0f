// MeasuredResult is what comparisons and histories know of a measurement: the rows of a document of
// `trireme bench` (benchmarks/schema/), or the steps of a training run. Plain values; parsing
// throws DataError for anything else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/damaged_lines.h"
#include "src/base/run_text.h"

namespace trireme {

// More is better for a rate, less for a time. The unit at the end of a name decides.
enum class Better { lower, higher, unknown };
Better better_of(std::string_view samples_name);

// Returns whether these samples measure the machine or another program for comparison
// ("ceiling_seconds", "peer_in_place_us"), or a part of something that is measured as a whole.
bool is_reference(std::string_view samples_name);

struct SampleSet {
  std::string name;            // with its unit: "time_us"
  std::vector<double> values;  // in the order of the measurement
  std::int64_t missing = 0;    // values that were NaN or infinite
  bool reference = false;      // explains other samples and is not judged itself
};

struct ResultRow {
  std::string name;                           // "gemm"
  std::map<std::string, std::string> params;  // values as JSON, without those that vary by chance
  std::vector<SampleSet> samples;
  std::map<std::string, double> metrics = {};  // those that are finite numbers

  // Identifies the row in another measurement: the name and all parameters.
  std::string key() const;
};

struct MeasuredResult {
  std::string origin;          // the file or folder
  std::string command;         // "coll", or "train" for a run
  double time = 0;             // seconds since the epoch
  double waited_fraction = 0;  // NaN if it is not known
  // Two results can be compared only if these are equal: {"host.cores", "64"}.
  std::map<std::string, std::string> conditions;
  // The names of the GPUs that may have computed: "" if there were none, and nothing if the
  // document does not say so (those before 2026-11-26) or its benchmark computes on the CPU only. A
  // condition if both results have it.
  std::optional<std::string> gpus;
  // What may differ and explains a difference: commit, host name, kernel.
  std::map<std::string, std::string> circumstances;
  std::vector<ResultRow> rows;
  // Questions of `bench all` that failed or did not end in time: "io: did not end in time". The
  // rows of such a question are complete, but others are missing.
  std::vector<std::string> failed;
  DamagedLines damaged_lines;  // of a run's metrics, which are left out
  DamagedLines damaged_log;    // of its log, likewise
};

// No measurement, in whatever unit, is as large as this. Statistics of larger numbers overflow.
inline constexpr double kLargestSample = 1e30;
// Returns the value. Throws DataError if its size is beyond kLargestSample.
double checked_sample(const std::string& name, double value);

inline constexpr std::int64_t kMostResultBytes = std::int64_t{256} << 20;

// Prints a warning on stderr if lines of the metrics.jsonl or the log of a run are damaged.
void warn_of_damaged_lines(const MeasuredResult& result);

// Removes the host's name from the rows of two measurements, each of which concerns one host only,
// so that rows about two hosts are compared. Rows of several hosts keep the names.
void forget_lone_hosts(MeasuredResult& a, MeasuredResult& b);

// Parses a document of `trireme bench -J`.
MeasuredResult parse_bench_result(std::string_view text, const std::string& origin);

// Parses the texts of a run's metrics.jsonl, config.yaml and rank 0's log; the last two may be
// empty. Ignores torn lines, and the first logged step, which includes preparations.
MeasuredResult parse_run_result(std::string_view metrics, std::string_view config,
                                std::string_view log, const std::string& origin);

// Reads a document of `trireme bench`, or a run if the path is a folder. Throws NotFound and
// IoError, too.
MeasuredResult read_measured_result(const std::filesystem::path& path,
                                    const TextReader& reader = plain_reader());

}  // namespace trireme
