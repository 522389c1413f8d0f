#include "benchmarks/bench_options.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <fmt/core.h>

#include "benchmarks/busy_watch.h"
#include "benchmarks/figures.h"
#include "benchmarks/report.h"
#include "benchmarks/tables.h"
#include "mpi/session/backend.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/named_file.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestDuration = 86'400;

// Returns whether this process will write the files, as far as the launcher tells before MPI is up.
bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) {
      return std::string_view(rank) == "0";
    }
  }
  return true;
}

// Writes each file that can be written. Throws the error of the first one that cannot.
void write_results(const Json& results, const BenchOutput& output, const BenchContext& context) {
  std::exception_ptr first;
  const auto write = [&](const std::string& file, const auto& text) {
    try {
      if (!file.empty()) {
        write_named_file(file, text());
      }
    } catch (const Error&) {
      first = first == nullptr ? std::current_exception() : first;
    }
  };
  write(output.json_file, [&] { return document_text(bench_document(results, context)); });
  write(output.csv_file, [&] { return results_csv(results); });
  write(output.openmetrics_file, [&] { return results_openmetrics(results, context); });
  if (first != nullptr) {
    std::rethrow_exception(first);
  }
}

void check_output_files(const BenchOutput& output) {
  check_output_file(output.json_file, "-J");
  check_output_file(output.csv_file, "--csv");
  check_output_file(output.openmetrics_file, "--openmetrics");
}

}  // namespace

void check_output_file(const std::string& file, std::string_view option) {
  if (!file.empty() && is_first_rank()) {
    check_named_file(file, option);
  }
}

void add_backend_option(CommandLine& command, std::string& backend) {
  command.add_option("--backend", backend, "The transport between ranks")
      .check(one_of(backend_names()));
}

Option add_output_options(CommandLine& command, BenchOutput& output, bool with_csv) {
  Option duration =
      command
          .add_option("--duration", output.duration,
                      "Measure for about SECONDS, instead of a number of rounds or iterations")
          .check(within(0.001, kLongestDuration))
          .no_default()
          .type_name("SECONDS");
  command.add_option("-J,--json-file", output.json_file, "Also write the results to FILE as JSON")
      .type_name("FILE")
      .written();
  if (with_csv) {
    command.add_option("--csv", output.csv_file, "Also write the results to FILE as CSV")
        .type_name("FILE")
        .written();
  }
  command
      .add_option("--openmetrics", output.openmetrics_file,
                  "Also write the results to FILE for the textfile collector of node_exporter, "
                  "which reads *.prom")
      .type_name("FILE")
      .written();
  return duration;
}

void print_results(const Json& results) {
  for (const Json& result : results) {
    fmt::print("{}", result_text(result));
  }
}

void run_bench(const BenchRun& run, const BenchOutput& output, AppContext& context) {
  check_can_measure();
  check_output_files(output);
  const BusyWatch watch;
  const Json results = run.measure();
  BenchContext about;
  about.command = run.command;
  if (run.left_out) {
    about.left_out = run.left_out();
  }
  if (run.failed) {
    about.failed = run.failed();
  }
  about.time = wall_clock_seconds();
  about.waited_fraction = watch.waiting_part();
  int rank = 0;
  if (context.has_session()) {
    MpiSession& session = context.session();
    rank = session.world().rank();
    about.places = session.places();
    about.mpi = session.library_version();
    about.waited_fraction = all_reduce_value(session.world(), about.waited_fraction, ReduceOp::max);
  }
  if (rank == 0) {
    run.print(results);
    std::fflush(stdout);  // it remains if a file cannot be written, which ends the process
    write_results(results, output, about);
    warn_if_busy(about.waited_fraction);
  }
  if (run.finish) {
    run.finish();
  }
}

void write_without_ranks(const Json& results, const BenchOutput& output, BenchContext about,
                         const MpiSession& session) {
  if (results.empty() && about.failed.empty()) {
    return;  // there is nothing that a document could hold
  }
  about.time = wall_clock_seconds();
  about.places = session.places();
  about.mpi = session.library_version();
  write_results(results, output, about);
}

Option run_when_given(CommandLine& command, AppContext& context, const std::string& name,
                      std::function<Json(const BenchOutput&)> measure) {
  const auto output = std::make_shared<BenchOutput>();
  const Option duration = add_output_options(command, *output);
  command.callback([name, output, measure = std::move(measure), &context] {
    run_bench({name, [&] { return measure(*output); }, print_results, {}, {}, {}}, *output,
              context);
  });
  return duration;
}

}  // namespace trireme
