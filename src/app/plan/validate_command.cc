#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/app/plan/plan_subcommands.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/plan/validation.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// Calibrations use a random tenth of a source's runs; the mean of this many draws is shown.
constexpr double kPart = 0.1;
constexpr int kDraws = 20;
constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kMostFileBytes = std::int64_t{64} << 20;

struct ValidateOptions {
  std::filesystem::path file;
  int worst = 5;
  std::string out;
  bool json = false;
};

struct SourceReport {
  std::string source;
  ErrorSummary plain, left_out, calibrated;
  TermGroups shares{};   // of the predicted time, mean
  TermGroups factors{};  // that would fit the source best
  std::vector<const PredictedRun*> worst;
  std::vector<Regret> regret;
};

struct Report {
  std::vector<SourceReport> sources;
  ErrorSummary all;
  std::map<std::string, int> left_out;  // reason: runs
};

SourceReport report_of(const std::vector<PredictedRun>& runs, const std::string& source,
                       int worst) {
  SourceReport report;
  report.source = source;
  std::vector<const PredictedRun*> members;
  std::vector<double> errors;
  for (const PredictedRun& run : runs) {
    if (run.run->source == source) {
      members.push_back(&run);
      errors.push_back(run.error());
    }
  }
  for (const PredictedRun* run : members) {
    const TermGroups terms = grouped(run->time);
    for (std::size_t i = 0; i < kTermGroups; ++i) {
      report.shares[i] += terms[i] / run->time.total() / static_cast<double>(members.size());
    }
  }
  report.plain = summarize(errors);
  report.factors = fit_factors(members);
  report.left_out = leave_out(runs, source);
  report.calibrated = calibrate_on_part(runs, source, kPart, kDraws, kSeed);
  report.regret = regrets(runs, source);
  report.worst = members;
  std::stable_sort(report.worst.begin(), report.worst.end(),
                   [](const PredictedRun* a, const PredictedRun* b) {
                     return std::abs(a->error()) > std::abs(b->error());
                   });
  report.worst.resize(std::min(report.worst.size(), static_cast<std::size_t>(worst)));
  return report;
}

Report make_report(const std::vector<PublishedRun>& runs, const std::vector<PredictedRun>& all,
                   int worst) {
  Report report;
  std::set<std::string> sources;
  std::vector<double> errors;
  for (const PredictedRun& run : all) {
    sources.insert(run.run->source);
    errors.push_back(run.error());
  }
  report.all = summarize(errors);
  for (const std::string& source : sources) {
    report.sources.push_back(report_of(all, source, worst));
  }
  for (const PublishedRun& run : runs) {
    if (!run.why_not.empty()) {
      ++report.left_out[run.why_not];
    }
  }
  return report;
}

void print_errors(const Report& report) {
  fmt::print("errors of the step time in %, nothing fitted\n{:<17}{:>5}{:>7}{:>8}{:>7}{:>7}   {}\n",
             "source", "runs", "mean", "median", "p90", "bias",
             "mean after a fit to: other sources, a tenth of its own");
  const auto row = [](const std::string& name, const ErrorSummary& e) {
    fmt::print("{:<17}{:>5}{:>7.1f}{:>8.1f}{:>7.1f}{:>+7.1f}", printable(name), e.runs,
               100 * e.mean_absolute, 100 * e.median, 100 * e.p90, 100 * e.bias);
  };
  for (const SourceReport& source : report.sources) {
    row(source.source, source.plain);
    fmt::print("   {:.1f}", 100 * source.left_out.mean_absolute);
    if (source.calibrated.runs > 0) {
      fmt::print(", {:.1f}", 100 * source.calibrated.mean_absolute);
    }
    fmt::print("\n");
  }
  row("all", report.all);
  fmt::print("\n");
  for (const auto& [reason, runs] : report.left_out) {
    fmt::print("left out: {} runs, {}\n", runs, printable(reason));
  }
}

void print_terms(const Report& report) {
  fmt::print(
      "\nterms: share of the predicted step, and the factor that would fit the source\n"
      "{:<17}",
      "source");
  for (const char* name : term_group_names()) {
    fmt::print("{:>15}", name);
  }
  fmt::print("\n");
  for (const SourceReport& source : report.sources) {
    fmt::print("{:<17}", printable(source.source));
    for (std::size_t i = 0; i < kTermGroups; ++i) {
      fmt::print("{:>7.1f} % x{:>4.2f}", 100 * source.shares[i], source.factors[i]);
    }
    fmt::print("\n");
  }
}

void print_worst(const Report& report) {
  fmt::print("\nruns that are predicted worst\n");
  for (const SourceReport& source : report.sources) {
    for (const PredictedRun* run : source.worst) {
      fmt::print("{:<17} line {:>3} {:>+6.1f} % of {:.3f} s: {}, {} on {} {}\n",
                 printable(source.source), run->run->line, 100 * run->error(), run->run->seconds,
                 printable(run->run->model_name), layout_text(run->run->layout), run->run->gpus,
                 printable(run->run->gpu_type));
    }
  }
  for (const SourceReport& source : report.sources) {
    for (const Regret& regret : source.regret) {
      if (source.source == "vtrain_multi") {
        fmt::print("the layout chosen of {} for {} takes {:.3f} times as long as the best one\n",
                   regret.layouts, printable(regret.grid), regret.ratio);
      }
    }
  }
}

Json to_json(const ErrorSummary& e) {
  return {{"runs", e.runs},
          {"mean_absolute", e.mean_absolute},
          {"median", e.median},
          {"p90", e.p90},
          {"bias", e.bias}};
}

Json to_json(const SourceReport& source) {
  Json terms = Json::object();
  for (std::size_t i = 0; i < kTermGroups; ++i) {
    terms[term_group_names()[i]] = {{"share", source.shares[i]}, {"factor", source.factors[i]}};
  }
  Json worst = Json::array();
  for (const PredictedRun* run : source.worst) {
    const TermGroups groups = grouped(run->time);
    Json seconds = Json::object();
    for (std::size_t i = 0; i < kTermGroups; ++i) {
      seconds[term_group_names()[i]] = groups[i];
    }
    worst.push_back({{"line", run->run->line},
                     {"model", run->run->model_name},
                     {"layout", layout_text(run->run->layout)},
                     {"measured_seconds", run->run->seconds},
                     {"predicted_seconds", run->time.total()},
                     {"predicted_terms", seconds},
                     {"error", run->error()}});
  }
  Json regret = Json::array();
  for (const Regret& each : source.regret) {
    regret.push_back({{"grid", each.grid}, {"layouts", each.layouts}, {"ratio", each.ratio}});
  }
  return {{"source", source.source},
          {"errors", to_json(source.plain)},
          {"fitted_to_others", to_json(source.left_out)},
          {"fitted_to_a_tenth", to_json(source.calibrated)},
          {"terms", terms},
          {"worst", worst},
          {"regret", regret}};
}

Json to_json(const Report& report) {
  Json sources = Json::array();
  for (const SourceReport& source : report.sources) {
    sources.push_back(to_json(source));
  }
  Json left_out = Json::object();
  for (const auto& [reason, runs] : report.left_out) {
    left_out[reason] = runs;
  }
  return {
      {"schema", 1}, {"errors", to_json(report.all)}, {"sources", sources}, {"left_out", left_out}};
}

void validate_plan(const ValidateOptions& options) {
  const std::vector<PublishedRun> runs =
      parse_published_runs(read_file(options.file, kMostFileBytes), options.file.string());
  std::map<std::string, Cluster> clusters;
  const std::vector<PredictedRun> predicted = predict(runs, clusters);
  const Report report = make_report(runs, predicted, options.worst);
  if (predicted.empty()) {
    throw DataError(fmt::format("{}: none of its {} runs can be predicted: {} (line {})",
                                options.file.string(), runs.size(), runs.front().why_not,
                                runs.front().line));
  }
  if (!options.out.empty()) {
    write_named_file(options.out, json_text(to_json(report)) + "\n");
  }
  if (options.json) {
    print_json(to_json(report));
    return;
  }
  print_errors(report);
  print_terms(report);
  print_worst(report);
}

}  // namespace

void add_plan_validate_command(CommandLine& plan) {
  CommandLine& command = plan.add_command("validate", "Compare predictions with published runs");
  const auto options = std::make_shared<ValidateOptions>();
  command
      .add_option("FILE", options->file,
                  "A table like benchmarks/plan/published_runs.csv, with measured step times")
      .required();
  command.add_option("--worst", options->worst, "Runs to show of each source")
      .check(integer_within(0, 100'000));
  command.add_option("-J", options->out, "Write the errors to FILE as JSON")
      .type_name("FILE")
      .written();
  command.add_flag("--json", options->json, "Print the same JSON");
  command.footer(
      "Example:\n"
      "  trireme plan validate benchmarks/plan/published_runs.csv\n"
      "docs/planner.md says what the tables mean.");
  command.callback([options] { validate_plan(*options); });
}

}  // namespace trireme
