#include "benchmarks/bench_options.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "benchmarks/busy_watch.h"
#include "benchmarks/figures.h"
#include "benchmarks/report.h"
#include "benchmarks/tables.h"
#include "mpi/session/backend.h"
#include "src/base/file.h"
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

void write_results(const Json& results, const BenchOutput& output, const BenchContext& context) {
  if (!output.json_file.empty()) {
    write_named_file(output.json_file, document_text(bench_document(results, context)));
  }
  if (!output.csv_file.empty()) {
    write_named_file(output.csv_file, results_csv(results));
  }
  if (!output.openmetrics_file.empty()) {
    write_named_file(output.openmetrics_file,
                     results_openmetrics(results, context.command, context.time));
  }
}

}  // namespace

void check_folder_of(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (is_first_rank() && !file.empty() && !folder.empty() &&
      !std::filesystem::is_directory(folder)) {
    throw NotFound(fmt::format("{}: there is no folder {}", file, folder.string()));
  }
}

void add_backend_option(CommandLine& command, std::string& backend) {
  command.add_option("--backend", backend, "The transport between ranks")
      .check(one_of(backend_names()));
}

void add_output_options(CommandLine& command, BenchOutput& output, bool with_csv) {
  command
      .add_option("--duration", output.duration,
                  "Measure for about SECONDS, instead of a number of rounds or iterations")
      .check(within(0.001, kLongestDuration))
      .no_default()
      .type_name("SECONDS");
  command.add_option("-J,--json-file", output.json_file, "Also write the results to FILE as JSON")
      .type_name("FILE");
  if (with_csv) {
    command.add_option("--csv", output.csv_file, "Also write the results to FILE as CSV")
        .type_name("FILE");
  }
  command
      .add_option("--openmetrics", output.openmetrics_file,
                  "Also write the results to FILE for the textfile collector of node_exporter, "
                  "which reads *.prom")
      .type_name("FILE");
}

void print_results(const Json& results) {
  for (const Json& result : results) {
    fmt::print("{}", result_text(result));
  }
}

void run_bench(const BenchRun& run, const BenchOutput& output, AppContext& context) {
  check_can_measure();
  for (const std::string* file : {&output.json_file, &output.csv_file, &output.openmetrics_file}) {
    check_folder_of(*file);
  }
  const BusyWatch watch;
  const Json results = run.measure();
  BenchContext about;
  about.command = run.command;
  if (run.left_out) {
    about.left_out = run.left_out();
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
    write_results(results, output, about);
    warn_if_busy(about.waited_fraction);
  }
  if (run.finish) {
    run.finish();
  }
}

void write_without_ranks(const Json& results, const BenchOutput& output, const std::string& command,
                         const MpiSession& session, const std::vector<std::string>& left_out) {
  if (results.empty()) {
    return;  // there is nothing that a document could hold
  }
  BenchContext about;
  about.command = command;
  about.left_out = left_out;
  about.time = wall_clock_seconds();
  about.places = session.places();
  about.mpi = session.library_version();
  write_results(results, output, about);
}

void run_when_given(CommandLine& command, AppContext& context, const std::string& name,
                    std::function<Json(const BenchOutput&)> measure) {
  const auto output = std::make_shared<BenchOutput>();
  add_output_options(command, *output);
  command.callback([name, output, measure = std::move(measure), &context] {
    run_bench({name, [&] { return measure(*output); }, print_results, {}, {}}, *output, context);
  });
}

}  // namespace trireme
