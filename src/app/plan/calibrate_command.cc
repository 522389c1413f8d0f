#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/calibrate/machine_rates.h"
#include "benchmarks/calibrate/short_trains.h"
#include "benchmarks/muted_output.h"
#include "benchmarks/provenance.h"
#include "benchmarks/report.h"
#include "src/app/command/number_check.h"
#include "src/app/command/written_files.h"
#include "src/app/plan/plan_subcommands.h"
#include "src/app/plan/prediction_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/plan/calibration.h"
#include "src/train/run/config_files.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

struct CalibrateOptions {
  std::vector<std::string> words;  // configurations and KEY=VALUE
  std::vector<std::string> runs;
  std::filesystem::path cluster;
  std::filesystem::path out;
  std::filesystem::path folder = ".";
  std::string name;
  std::string json_file;
  double seconds = 30;
  std::int64_t steps = 10;
  int rounds = 3;
};

// CalibrationData holds what was measured, with the cluster that it belongs to.
struct CalibrationData {
  Cluster cluster;
  std::map<std::string, std::string> remarks;
  std::vector<MeasuredStep> steps;
};

ShortTrainsOptions trains_of(const CalibrateOptions& options) {
  ShortTrainsOptions trains;
  for (const std::string& word : options.words) {
    if (word.find('=') == std::string::npos) {
      trains.configs.emplace_back(word);
    } else {
      trains.arguments.push_back(word);
    }
  }
  trains.folder = options.folder;
  trains.steps = options.steps;
  trains.rounds = options.rounds;
  return trains;
}

void check_options(const CalibrateOptions& options, const ShortTrainsOptions& trains) {
  if (trains.configs.empty() && options.runs.empty()) {
    throw UsageError(
        "trireme plan calibrate: give the YAML file of a run to measure with, or --from RUN with a "
        "run that has a prediction.json");
  }
  if (trains.configs.empty() && options.cluster.empty()) {
    throw UsageError(
        "trireme plan calibrate: --from alone measures nothing: give the rates of the machine as "
        "--cluster FILE, or a run's YAML file to measure them with");
  }
  if (!trains.arguments.empty() && trains.configs.empty()) {
    throw UsageError("trireme plan calibrate: KEY=VALUE needs a run's YAML file");
  }
}

// Takes the products of all configurations' models, each shape once.
MachineRatesOptions rates_of(const CalibrateOptions& options, const ShortTrainsOptions& trains) {
  MachineRatesOptions rates{.shapes = {}, .folder = options.folder, .seconds = options.seconds};
  std::vector<ProductShape>& shapes = rates.shapes;
  for (const std::filesystem::path& file : trains.configs) {
    const ConfigSources sources{
        .file = file, .arguments = trains.arguments, .environment = environ};
    const RunConfig config = load_run_config(sources).config;
    std::vector<std::filesystem::path> read = files_of_config(sources, config);
    check_not_read({{"-J", options.json_file}}, read);
    std::erase(read, config.plan_cluster);  // not read here, and this command may renew it
    check_not_read({{"--out", options.out}}, read);
    rates.threads = static_cast<int>(config.train.threads.integer);
    if (!rates.shapes.empty() && config.train.device != rates.device) {
      throw ConfigError(
          fmt::format("{}: train.device is {}, but {} before: a cluster file "
                      "describes one kind of device",
                      file.string(), config.train.device, rates.device));
    }
    rates.device = config.train.device;
    rates.fp8 = rates.fp8 || config.train.uses_fp8();
    rates.sum_order = config.reproducibility == "elastic" ? SumOrder::tree : SumOrder::any;
    for (const ProductShape& shape :
         model_shapes(config.model, config.train.micro_batch * config.data.sequence)) {
      const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const ProductShape& s) {
        return s.m == shape.m && s.n == shape.n && s.k == shape.k &&
               s.transpose_a == shape.transpose_a && s.transpose_b == shape.transpose_b;
      });
      if (!known) {
        shapes.push_back(shape);
      }
    }
  }
  return rates;
}

Cluster first_guess() {
  Cluster cluster;
  cluster.name = host_name();
  const Json processor = host_json().at("processor");
  cluster.device.type = processor.is_string() ? processor.get<std::string>() : "processor";
  cluster.efficiency.attention = 0.35;  // its factor is fitted
  return cluster;
}

void measure_all(const CalibrateOptions& options, const ShortTrainsOptions& trains,
                 AppContext& context, CalibrationData& found) {
  check_can_measure();
  const MachineRatesOptions rates_options = rates_of(options, trains);
  MpiSession& session = context.session();
  const Cluster base = options.cluster.empty() ? first_guess() : load_cluster(options.cluster);
  if (session.world().rank() == 0) {
    say(fmt::format("calibrate: rates of {}, {:.0f} s", counted(session.world().size(), "rank"),
                    options.seconds));
  }
  {
    const MutedOutput muted;
    MachineRates rates = measure_machine(base, rates_options, context);
    found.cluster = std::move(rates.cluster);
    found.remarks = std::move(rates.remarks);
  }
  found.steps = short_trains(trains, context);
}

void add_remarks(const CalibrateOptions& options, const CalibrationFit& fit,
                 std::map<std::string, std::string>& remarks) {
  std::string& top = remarks[""];
  top = "Written by trireme plan calibrate";
  if (!options.cluster.empty()) {
    top += fmt::format(".\nFigures without a comment are those of {}",
                       options.cluster.filename().string());
  } else {
    top +=
        ".\nFigures without a comment are defaults or unknown, such as prices and failures: "
        "fill them in";
  }
  top += ".\nMeasured and fitted ms per step; error of the fit, and of a fit to all other rows:";
  for (const CalibrationRow& row : fit.rows) {
    top += fmt::format("\n  {:.1f} and {:.1f}, {:+.1f} %, {:+.1f} %: {}",
                       1e3 * row.measured.predictable(), 1e3 * row.predicted.predictable(),
                       100 * row.error, 100 * row.error_left_out, row.name);
  }
  for (const auto& [key, count] : fit.fitted_to) {
    remarks[key] = fmt::format("fitted to {}", counted(count, "measured step"));
  }
  remarks["residual_percent"] =
      fmt::format("mean error of {} by fits to the others", counted(std::ssize(fit.rows), "row"));
}

void print_fit(const CalibrationFit& fit) {
  fmt::print("{:>11} {:>11} {:>8} {:>9}  {}\n", "measured", "predicted", "error", "left out",
             "step");
  for (const CalibrationRow& row : fit.rows) {
    fmt::print("{:>8.2f} ms {:>8.2f} ms {:>+6.1f} % {:>+7.1f} %  {}\n",
               1e3 * row.measured.predictable(), 1e3 * row.predicted.predictable(), 100 * row.error,
               100 * row.error_left_out, printable(row.name));
  }
  const Cluster::Calibration& c = fit.cluster.calibration;
  fmt::print(
      "factors: products {:.3f}, head {:.3f}, attention {:.3f}, kernels {:.3f}, tensor {:.3f}, "
      "pipeline {:.3f}, replicas {:.3f}, optimizer {:.3f}\n"
      "residual {:.1f} %: the mean error of a row by a fit to the others\n",
      c.products, c.head, c.attention, c.kernels, c.tensor, c.pipeline, c.replicas, c.optimizer,
      fit.cluster.residual_percent);
}

Json fit_json(const CalibrationFit& fit, const std::vector<MeasuredStep>& steps) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Json row = to_json(steps[i]);
    row["predicted"] = to_json(fit.rows[i].predicted);
    row["error"] = fit.rows[i].error;
    row["error_left_out"] = fit.rows[i].error_left_out;
    rows.push_back(std::move(row));
  }
  return {{"schema", 1},
          {"cluster", fit.cluster.name},
          {"residual_percent", fit.cluster.residual_percent},
          {"steps", rows}};
}

// Throws DataError if no factors make the predictions resemble the measured steps.
void check_plausible(const CalibrationFit& fit) {
  constexpr double kMostResidual = 1000;  // percent, which a cluster file may state
  const double residual = fit.cluster.residual_percent;
  if (!(residual <= kMostResidual)) {
    throw DataError(fmt::format(
        "no cluster file was written: whatever the factors, predictions are wrong by {} in the "
        "mean, so the cluster file that was given or a measured step is of another machine, or of "
        "another number of ranks",
        std::isfinite(residual) ? fmt::format("{:.3g} %", residual) : "more than any number"));
  }
  constexpr double kDoubtful = 25;
  if (residual > kDoubtful) {
    fmt::print(
        stderr,
        "warning: predictions with this file would be wrong by {:.0f} % in the mean: was the "
        "machine busy, or are the runs too short? Calibrate again on an idle machine, with "
        "--seconds and --rounds as they are by default\n",
        residual);
  }
}

// Rounds the factors to a few digits, as people write them.
void round_factors(Cluster& cluster) {
  Cluster::Calibration& c = cluster.calibration;
  for (double* factor : {&c.products, &c.head, &c.attention, &c.kernels, &c.tensor, &c.pipeline,
                         &c.replicas, &c.optimizer}) {
    *factor = std::max(std::round(*factor * 1e4) / 1e4, 1e-4);
  }
  cluster.residual_percent = std::round(cluster.residual_percent * 10) / 10;
}

void calibrate(const CalibrateOptions& options, AppContext& context) {
  const ShortTrainsOptions trains = trains_of(options);
  check_options(options, trains);
  CalibrationData found;
  if (trains.configs.empty()) {
    found.cluster = load_cluster(options.cluster);
  } else {
    measure_all(options, trains, context, found);
    if (context.session().world().rank() != 0) {
      return;
    }
  }
  for (const std::string& run : options.runs) {
    found.steps.push_back(read_prediction(run).step);
  }
  if (!options.name.empty()) {
    found.cluster.name = options.name;
  }
  if (found.steps.empty()) {
    throw ConfigError("nothing was measured: raise --steps");
  }
  CalibrationFit fit = fit_calibration(found.cluster, found.steps);
  check_plausible(fit);
  round_factors(fit.cluster);
  add_remarks(options, fit, found.remarks);
  write_named_file(options.out.string(), cluster_text(fit.cluster, found.remarks));
  if (!options.json_file.empty()) {
    write_named_file(options.json_file, fit_json(fit, found.steps).dump(2) + "\n");
  }
  print_fit(fit);
}

}  // namespace

void add_plan_calibrate_command(CommandLine& plan, AppContext& context) {
  CommandLine& command =
      plan.add_command("calibrate", "Measure this machine and write its cluster file");
  const auto options = std::make_shared<CalibrateOptions>();
  command.add_option("CONFIG", options->words,
                     "YAML files of runs whose models and data are used, and KEY=VALUE for all of "
                     "them");
  command
      .add_option("--from", options->runs,
                  "Also fit to finished runs that have a prediction.json; without CONFIG, to these "
                  "alone")
      .type_name("RUN");
  command
      .add_option("--cluster", options->cluster,
                  "Take figures that are not measured from this cluster file")
      .type_name("FILE");
  command.add_option("--out", options->out, "The cluster file to write").required().written();
  command.add_option("--name", options->name, "Name of the cluster (default: that of the host)")
      .type_name("NAME");
  command
      .add_option("--dir", options->folder,
                  "Write and read in a new folder in DIR, which is removed at the end")
      .type_name("DIR");
  command.add_option("--seconds", options->seconds, "Time for the rates of the machine")
      .check(positive_number());
  command.add_option("--steps", options->steps, "Timed steps of a short run")
      .check(positive_count());
  command.add_option("--rounds", options->rounds, "How often each short run is made")
      .check(integer_within(1, 100));
  command.add_option("-J", options->json_file, "Write the measured steps to FILE as JSON")
      .type_name("FILE")
      .written();
  command.footer(
      "Examples:\n"
      "  mpirun -n 2 trireme plan calibrate run.yaml --out two-ranks.yaml\n"
      "  trireme plan calibrate --from runs/first --cluster site.yaml --out site-2.yaml\n"
      "Start as many ranks per node as the runs to predict have.");
  command.callback([options, &context] { calibrate(*options, context); });
}

}  // namespace trireme
