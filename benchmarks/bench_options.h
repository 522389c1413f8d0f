// Declares the options that the benchmarks share, and runs a benchmark with them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/report.h"
#include "src/app/command/app_context.h"
#include "src/app/command/command_line.h"

namespace trireme {

void add_backend_option(CommandLine& command, std::string& backend);

// BenchOutput holds where the results go besides standard output; "" for nowhere.
struct BenchOutput {
  std::string json_file;
  std::string csv_file;
  std::string openmetrics_file;
  double duration = 0;  // seconds to measure for; 0 for a number of samples
};
// Adds -J, --openmetrics and --duration, and --csv unless the benchmark has a CSV of its own.
// Returns --duration, which benchmarks that refuse it hide.
Option add_output_options(CommandLine& command, BenchOutput& output, bool with_csv = true);

// Throws an Error on the rank that writes files if this one cannot be written, because a benchmark
// that takes minutes must not fail in its last step: NotFound if its folder is missing, ConfigError
// for "-", PolicyError or IoError for a folder, a device, or a folder that this process cannot
// write to. file: may be empty. option: of the command line, for the message.
void check_output_file(const std::string& file, std::string_view option);

// BenchRun is a benchmark as its command runs it.
struct BenchRun {
  std::string command;  // "step"
  // Measures and returns the results. Collective.
  std::function<nlohmann::ordered_json()> measure;
  // Prints the results for people on rank 0.
  std::function<void(const nlohmann::ordered_json& results)> print;
  // Returns names of results for which there was no time, after `measure`; may be empty.
  std::function<std::vector<std::string>()> left_out = {};
  // Returns the questions that have failed, after `measure`; may be empty.
  std::function<std::vector<FailedQuestion>()> failed = {};
  // Called last on every rank, for the exit code or an error; may be empty.
  std::function<void()> finish;
};
// Prints each result (figures.h).
void print_results(const nlohmann::ordered_json& results);

// Checks that the files can be written, runs the benchmark, prints its results, writes the files,
// and warns on standard error if this process had to wait for cores. Collective if there is a
// session.
void run_bench(const BenchRun& run, const BenchOutput& output, AppContext& context);

// Writes the files as run_bench() does, on one rank and without talking to others, for a benchmark
// that has to end early. about: its command, and what has no result.
void write_without_ranks(const nlohmann::ordered_json& results, const BenchOutput& output,
                         BenchContext about, const MpiSession& session);

// Makes the command run a benchmark that takes all of its options by itself. Adds the common ones,
// and returns --duration.
Option run_when_given(CommandLine& command, AppContext& context, const std::string& name,
                      std::function<nlohmann::ordered_json(const BenchOutput&)> measure);

}  // namespace trireme
