#include "benchmarks/mem/mem.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "benchmarks/mem/pointer_chase.h"
#include "benchmarks/mem/stream_team.h"
#include "benchmarks/progress.h"
#include "benchmarks/provenance.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "src/base/error.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kCacheFactor = 4;  // STREAM's rule for the size of an array
constexpr double kMostOfFree = 0.7;
constexpr std::int64_t kUnknownCacheBytes = std::int64_t{256} << 20;
constexpr std::int64_t kLeastBytes = 1 << 20;
constexpr StopRule kKnownStream{.least = 6, .most = 100, .seconds = 15, .precision = 0.05};
constexpr StopRule kKnownLatency{.least = 10, .most = 1000, .seconds = 2, .precision = 0.05};
constexpr std::int64_t kHops = 50'000;  // per sample: some milliseconds

// The cores that measure together.
struct Domain {
  std::string name;
  Json numa_node;  // null for the machine
  std::vector<PinnedCore> cores;
};

struct StreamSeries {
  StreamKernel kernel;
  StreamStores stores;
  std::vector<double> seconds;
};

std::vector<Domain> domains_of(const std::vector<PinnedCore>& cores) {
  std::map<int, std::vector<PinnedCore>> nodes;
  for (const PinnedCore& core : cores) {
    nodes[core.numa_node].push_back(core);
  }
  std::vector<Domain> domains = {{"machine", nullptr, cores}};
  for (const auto& [node, own] : nodes) {
    if (nodes.size() > 1) {
      domains.push_back({fmt::format("NUMA node {}", node), node, own});
    }
  }
  return domains;
}

class MemBench {
 public:
  explicit MemBench(const BenchMemOptions& options)
      : options_(options),
        cores_(pinned_cores(options.root)),
        domains_(domains_of(cores_)),
        cache_(last_level_cache_bytes()),
        progress_("bench mem", parts(), true) {
    const auto free =
        static_cast<std::int64_t>(kMostOfFree * static_cast<double>(available_memory().bytes));
    bytes_ = choose_array_bytes(options.bytes, cache_, free, 3);
    if (cache_ > 0 && static_cast<double>(bytes_) < kCacheFactor * static_cast<double>(cache_)) {
      say(fmt::format(
          "warning: the arrays are {:.2g} times as large as the last-level caches ({}), "
          "not {:g} times:\nthe results may be those of the caches",
          static_cast<double>(bytes_) / static_cast<double>(cache_), format_bytes(cache_),
          kCacheFactor));
    } else if (cache_ == 0) {
      say("warning: this system does not tell the size of its caches, so the results may be "
          "theirs");
    }
  }

  BenchMemResult run() {
    BenchMemResult result{Json::array(), "", 0};
    if (options_.bandwidth) {
      for (const Domain& domain : domains_) {
        bandwidth(domain, result);
      }
    }
    if (options_.latency) {
      latencies(result);
    }
    progress_.finish();
    result.text = text_;
    return result;
  }

 private:
  int nodes() const { return std::max(static_cast<int>(domains_.size()) - 1, 1); }
  // Returns the number of tables and pairs of nodes that are measured.
  int parts() const {
    return (options_.bandwidth ? static_cast<int>(domains_.size()) : 0) +
           (options_.latency ? nodes() * nodes() : 0);
  }
  StopRule rule(const StopRule& known) const {
    return options_.duration > 0 ? StopRule::count_or_duration(0, options_.duration / parts())
                                 : known;
  }
  void bandwidth(const Domain& domain, BenchMemResult& result);
  Json stream_entry(const Domain& domain, const StreamTeam& team, const StreamSeries& series,
                    std::int64_t bytes, std::int64_t wrong) const;
  void add_stream_table(const Domain& domain, const StreamTeam& team,
                        const std::vector<StreamSeries>& all, StreamStores stores);
  void latencies(BenchMemResult& result);
  void latency(const PinnedCore& from, const PinnedCore& to, PointerChase& chase,
               BenchMemResult& result);

  BenchMemOptions options_;
  std::vector<PinnedCore> cores_;
  std::vector<Domain> domains_;
  std::int64_t cache_;
  std::int64_t bytes_ = 0;
  BenchProgress progress_;
  std::string text_;
};

void MemBench::bandwidth(const Domain& domain, BenchMemResult& result) {
  progress_.stage(fmt::format("STREAM on {} of the {}", counted(std::ssize(domain.cores), "core"),
                              domain.name));
  const std::int64_t bytes =
      domain.numa_node.is_null() ? bytes_ : std::max(bytes_ / nodes(), kLeastBytes);
  StreamTeam team(domain.cores, bytes);
  std::vector<StreamSeries> all;
  for (const StreamStores stores : {StreamStores::ordinary, StreamStores::streaming}) {
    for (const StreamKernel kernel : kStreamKernels) {
      team.run(kernel, stores);
      all.push_back({kernel, stores, {}});
    }
  }
  Sampling sampling(rule(kKnownStream));
  while (std::any_of(all.begin(), all.end(),
                     [&](const StreamSeries& series) { return sampling.more(series.seconds); })) {
    for (StreamSeries& series : all) {
      series.seconds.push_back(team.run(series.kernel, series.stores));
    }
  }
  const std::int64_t wrong = team.wrong();
  result.wrong += wrong;
  progress_.done();
  for (const StreamSeries& series : all) {
    add_row(result.results, stream_entry(domain, team, series, bytes, wrong), options_.rows);
  }
  add_stream_table(domain, team, all, StreamStores::ordinary);
  add_stream_table(domain, team, all, StreamStores::streaming);
}

Json MemBench::stream_entry(const Domain& domain, const StreamTeam& team,
                            const StreamSeries& series, std::int64_t bytes,
                            std::int64_t wrong) const {
  const MedianInterval time = median_interval(series.seconds);
  const double moved = team.bytes(series.kernel);
  const double best = *std::min_element(series.seconds.begin(), series.seconds.end());
  return {{"name", "mem_stream"},
          {"params",
           {{"kernel", name_of(series.kernel)},
            {"stores", name_of(series.stores)},
            {"numa_node", domain.numa_node},
            {"cores", domain.cores.size()},
            {"array_bytes", bytes},
            {"array_to_cache_ratio", cache_ > 0 ? Json(static_cast<double>(bytes) *
                                                       (domain.numa_node.is_null() ? 1 : nodes()) /
                                                       static_cast<double>(cache_))
                                                : Json(nullptr)}}},
          {"metrics",
           {{"bytes_per_s", moved / time.median},
            {"bytes_per_s_low", moved / time.high},
            {"bytes_per_s_high", moved / time.low},
            {"best_bytes_per_s", moved / best},
            {"wrong", wrong}}},
          {"measurement",
           to_json({.warmup = 1,
                    .stop = rule(kKnownStream),
                    .sample = "one pass over the arrays, from the beginning of the first "
                              "thread to the end of the last",
                    .synchronized_by = "a latch of the pinned threads"})},
          {"samples", {{"time_us", samples_json(multiplied(series.seconds, 1e6))}}}};
}

// Prints the table of STREAM 5.10, whose first iteration does not count; nor does it here.
void MemBench::add_stream_table(const Domain& domain, const StreamTeam& team,
                                const std::vector<StreamSeries>& all, StreamStores stores) {
  text_ += fmt::format(
      "# {}, {}, {} stores, arrays of {}, {}\n"
      "Function    Best Rate MB/s  Avg time     Min time     Max time\n",
      domain.name, counted(std::ssize(domain.cores), "core"), name_of(stores),
      format_bytes(team.array_bytes()), counted(std::ssize(all.front().seconds), "round"));
  for (const StreamSeries& series : all) {
    if (series.stores == stores) {
      const auto [least, most] = std::minmax_element(series.seconds.begin(), series.seconds.end());
      const double sum = std::accumulate(series.seconds.begin(), series.seconds.end(), 0.0);
      std::string label = std::string(name_of(series.kernel)) + ":";
      label.front() = static_cast<char>(std::toupper(label.front()));
      text_ += fmt::format("{:<11}{:>12.1f}  {:>11.6f}  {:>11.6f}  {:>11.6f}\n", label,
                           1e-6 * team.bytes(series.kernel) / *least,
                           sum / static_cast<double>(series.seconds.size()), *least, *most);
    }
  }
}

void MemBench::latencies(BenchMemResult& result) {
  std::map<int, PinnedCore> first_of_node;
  for (const PinnedCore& core : cores_) {
    first_of_node.emplace(core.numa_node, core);
  }
  text_ += fmt::format("# Latency (ns) of a chain of loads through {}\n# {:>9} {:>9} {:>9}\n",
                       format_bytes(bytes_), "from node", "to node", "median");
  for (const auto& [to_node, to] : first_of_node) {
    progress_.stage(fmt::format("latency of the memory of NUMA node {}", to_node));
    PointerChase chase(to, bytes_);
    for (const auto& [from_node, from] : first_of_node) {
      latency(from, to, chase, result);
    }
  }
}

void MemBench::latency(const PinnedCore& from, const PinnedCore& to, PointerChase& chase,
                       BenchMemResult& result) {
  std::vector<double> ns;
  chase.seconds(from, kHops);
  for (Sampling sampling(rule(kKnownLatency)); sampling.more(ns);) {
    ns.push_back(1e9 * chase.seconds(from, kHops));
  }
  progress_.done();
  const MedianInterval time = median_interval(ns);
  const auto huge = chase.huge_page_fraction();
  text_ += fmt::format("  {:>9} {:>9} {:>9.1f}\n", from.numa_node, to.numa_node, time.median);
  add_row(result.results,
          {{"name", "mem_latency"},
           {"params",
            {{"from_numa_node", from.numa_node},
             {"to_numa_node", to.numa_node},
             {"cpu", from.cpu},
             {"bytes", bytes_},
             {"stride_bytes", PointerChase::kStrideBytes},
             {"hops", kHops},
             {"huge_page_fraction", huge ? Json(*huge) : Json(nullptr)}}},
           {"metrics",
            {{"latency_ns", time.median},
             {"latency_ns_low", time.low},
             {"latency_ns_high", time.high}}},
           {"measurement", to_json({.warmup = 1,
                                    .stop = rule(kKnownLatency),
                                    .sample = "params.hops loads, per load",
                                    .synchronized_by = kOneProcess})},
           {"samples", {{"latency_ns", samples_json(ns)}}}},
          options_.rows);
}

}  // namespace

std::int64_t choose_array_bytes(std::int64_t wanted, std::int64_t cache, std::int64_t free,
                                int arrays) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t most = free / arrays / kLine * kLine;
  if (wanted > 0) {
    if (wanted > most || wanted < kLeastBytes) {
      throw ConfigError(fmt::format(
          "--bytes: {} arrays of {} each; an array must have at least {}, and the free memory "
          "allows {}",
          arrays, format_bytes(wanted), format_bytes(kLeastBytes), format_bytes(most)));
    }
    return wanted / kLine * kLine;
  }
  const std::int64_t fitting =
      cache > 0 ? static_cast<std::int64_t>(kCacheFactor * static_cast<double>(cache))
                : kUnknownCacheBytes;
  if (most < kLeastBytes) {
    throw ResourceError(fmt::format("only {} of memory are free", format_bytes(free)));
  }
  return std::min(fitting / kLine * kLine, most);
}

BenchMemResult bench_mem(const BenchMemOptions& options) { return MemBench(options).run(); }

}  // namespace trireme
