#include "benchmarks/noise/noise.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "benchmarks/noise/quanta.h"
#include "benchmarks/pinned_threads.h"
#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostQuanta = 1'000'000;  // per core
constexpr std::size_t kMostRows = 16;           // of the table, per method

// What is counted on a core around its measurement.
struct CoreCounts {
  std::int64_t switches = 0;
  Json interrupts;  // null if the system does not tell
};

class NoiseBench {
 public:
  explicit NoiseBench(const BenchNoiseOptions& options)
      : options_(options),
        cores_(pinned_cores()),
        counts_(cores_.size()),
        seconds_(options.duration / (options.fixed_work && options.fixed_time ? 2 : 1)) {}

  Json run() {
    Json results = Json::array();
    BenchProgress progress("bench noise", options_.fixed_work && options_.fixed_time ? 2 : 1, true);
    if (options_.fixed_work) {
      progress.stage(fmt::format("fixed work for {:g} s", seconds_));
      work(results);
      progress.done();
    }
    if (options_.fixed_time) {
      progress.stage(fmt::format("fixed time for {:g} s", seconds_));
      time(results);
      progress.done();
    }
    progress.finish();
    return results;
  }

 private:
  void work(Json& results);
  void time(Json& results);
  // Runs the measurement on all cores at once, and counts around it.
  template <class Measure>
  void on_cores(Measure measure) {
    run_pinned(cores_, [&](std::size_t i) {
      const auto before = interrupts_of(cores_[i].cpu);
      const std::int64_t switches = involuntary_switches();
      measure(i);
      counts_[i].switches = involuntary_switches() - switches;
      const auto after = interrupts_of(cores_[i].cpu);
      counts_[i].interrupts = before && after ? Json(*after - *before) : Json(nullptr);
    });
  }
  Json entry(const char* name, const char* method, const Json& place, const Json& metrics) const;
  Json summary(const char* method, const std::vector<double>& lost, const Json& metrics) const;
  Json of_core(std::size_t i) const {
    return {{"cpu", cores_[i].cpu}, {"numa_node", cores_[i].numa_node}};
  }
  void add_counts(Json& metrics, std::size_t i) const {
    metrics["involuntary_switches"] = counts_[i].switches;
    metrics["interrupts"] = counts_[i].interrupts;
  }

  BenchNoiseOptions options_;
  std::vector<PinnedCore> cores_;
  std::vector<CoreCounts> counts_;
  double seconds_;
};

Json NoiseBench::entry(const char* name, const char* method, const Json& place,
                       const Json& metrics) const {
  Json params = {{"method", method}};
  params.update(place);
  params["quantum_us"] = options_.quantum_us;
  params["cores"] = cores_.size();
  const bool work = std::string(method) == "fixed_work";
  return {{"name", name},
          {"params", params},
          {"metrics", metrics},
          {"measurement",
           to_json({.warmup = 1,
                    .stop = {.least = 1,
                             .most = static_cast<std::int64_t>(kMostQuanta),
                             .seconds = seconds_,
                             .precision = 0},
                    .sample = work ? "the time of one quantum of work"
                                   : "the units of work that ended in one quantum of time",
                    .synchronized_by = "a latch of the pinned threads, before the first sample"})},
          {"samples", Json::object()}};
}

Json NoiseBench::summary(const char* method, const std::vector<double>& lost,
                         const Json& more) const {
  const auto worst = std::max_element(lost.begin(), lost.end());
  double sum = 0;
  for (const double each : lost) {
    sum += each;
  }
  Json metrics = {{"lost_fraction", sum / static_cast<double>(lost.size())},
                  {"worst_cpu", cores_[static_cast<std::size_t>(worst - lost.begin())].cpu},
                  {"worst_cpu_lost_fraction", *worst}};
  metrics.update(more);
  return entry("noise", method, Json::object(), metrics);
}

void NoiseBench::work(Json& results) {
  std::vector<WorkQuanta> quanta(cores_.size());
  on_cores([&](std::size_t i) {
    quanta[i] = fixed_work(units_in(1e-6 * options_.quantum_us), seconds_, kMostQuanta);
  });
  std::vector<double> lost;
  double longest = 0;
  int longest_cpu = cores_.front().cpu;
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const WorkStatistics found = evaluate(quanta[i]);
    lost.push_back(found.lost_fraction);
    if (found.most - found.least > longest) {
      longest = found.most - found.least;
      longest_cpu = cores_[i].cpu;
    }
    Json metrics = {{"least_us", 1e6 * found.least},      {"median_us", 1e6 * found.median},
                    {"p99_us", 1e6 * found.p99},          {"p999_us", 1e6 * found.p999},
                    {"most_us", 1e6 * found.most},        {"lost_fraction", found.lost_fraction},
                    {"quanta", quanta[i].seconds.size()}, {"detours", found.detours}};
    add_counts(metrics, i);
    Json one = entry("noise_core", "fixed_work", of_core(i), metrics);
    one["samples"]["time_us"] = samples_json(multiplied(quanta[i].seconds, 1e6));
    one["worst_detours"] = Json::array();
    for (const Detour& detour : found.worst) {
      one["worst_detours"].push_back(
          {{"at_ms", 1e3 * detour.at}, {"detour_us", 1e6 * detour.seconds}});
    }
    add_row(results, one, options_.rows);
  }
  add_row(results,
          summary("fixed_work", lost,
                  {{"longest_detour_us", 1e6 * longest}, {"longest_detour_cpu", longest_cpu}}),
          options_.rows);
}

void NoiseBench::time(Json& results) {
  std::vector<std::vector<double>> counted(cores_.size());
  on_cores([&](std::size_t i) {
    counted[i] = fixed_time(1e-6 * options_.quantum_us, seconds_, kMostQuanta);
  });
  std::vector<double> lost;
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const TimeStatistics found = evaluate(counted[i]);
    lost.push_back(found.lost_fraction);
    Json metrics = {{"most_units", found.most},    {"median_units", found.median},
                    {"least_units", found.least},  {"lost_fraction", found.lost_fraction},
                    {"quanta", counted[i].size()}, {"empty_quanta", found.empty}};
    add_counts(metrics, i);
    Json one = entry("noise_core", "fixed_time", of_core(i), metrics);
    one["samples"]["work_units"] = samples_json(counted[i]);
    add_row(results, one, options_.rows);
  }
  add_row(results, summary("fixed_time", lost, Json::object()), options_.rows);
}

double lost_of(const Json& result) {
  const Json& lost = result.at("metrics").at("lost_fraction");
  return lost.is_number() ? lost.get<double>() : 0;
}

std::string row_of(const Json& result) {
  const Json& metrics = result.at("metrics");
  const Json& params = result.at("params");
  const bool work = params.at("method") == "fixed_work";
  return fmt::format(
      "  {:>5} {:>5} {:>8.3f} {:>9} {:>9} {:>9} {:>9} {:>9}\n", params.at("cpu").get<int>(),
      params.at("numa_node").get<int>(), 100 * lost_of(result),
      fmt::format("{:.1f}", metrics.at(work ? "median_us" : "median_units").get<double>()),
      work ? fmt::format("{:.1f}", metrics.at("p99_us").get<double>()) : "-",
      fmt::format("{:.1f}", metrics.at(work ? "most_us" : "least_units").get<double>()),
      metrics.at("involuntary_switches").get<std::int64_t>(),
      metrics.at("interrupts").is_null() ? "-" : metrics.at("interrupts").dump());
}

std::string verdict_on(const Json& summary) {
  const Json& metrics = summary.at("metrics");
  std::string text =
      fmt::format("# noise: {:.3f} % of the time lost on average, {:.3f} % on processor {}",
                  100 * lost_of(summary), 100 * metrics.at("worst_cpu_lost_fraction").get<double>(),
                  metrics.at("worst_cpu").get<int>());
  if (metrics.contains("longest_detour_us")) {
    text += fmt::format(";\n# longest detour {:.1f} us, on processor {}",
                        metrics.at("longest_detour_us").get<double>(),
                        metrics.at("longest_detour_cpu").get<int>());
  }
  return text + "\n";
}

}  // namespace

Json bench_noise(const BenchNoiseOptions& options) { return NoiseBench(options).run(); }

std::string noise_text(const Json& results) {
  std::string text;
  for (const char* method : {"fixed_work", "fixed_time"}) {
    std::vector<Json> cores;
    std::string verdict;
    for (const Json& result : results) {
      if (result.at("params").at("method") != method) {
        continue;
      }
      if (result.at("name") == "noise_core") {
        cores.push_back(result);
      } else {
        verdict = verdict_on(result);
      }
    }
    if (cores.empty()) {
      continue;
    }
    std::stable_sort(cores.begin(), cores.end(),
                     [](const Json& a, const Json& b) { return lost_of(a) > lost_of(b); });
    const bool work = cores.front().at("params").at("method") == "fixed_work";
    text += fmt::format(
        "# Trireme noise, {} quanta of {:g} us, {}\n  {:>5} {:>5} {:>8} {:>9} {:>9} "
        "{:>9} {:>9} {:>9}\n",
        work ? "work" : "time", cores.front().at("params").at("quantum_us").get<double>(),
        work ? "times in us" : "units of work", "cpu", "node", "lost %", "median", "p99",
        work ? "most" : "least", "switches", "interrupts");
    for (std::size_t i = 0; i < std::min(cores.size(), kMostRows); ++i) {
      text += row_of(cores[i]);
    }
    text += cores.size() > kMostRows ? fmt::format("# {} cores with less noise are not shown\n",
                                                   cores.size() - kMostRows)
                                     : "";
    text += verdict;
  }
  return text;
}

}  // namespace trireme
