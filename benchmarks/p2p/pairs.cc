#include "benchmarks/p2p/pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "benchmarks/p2p/point_to_point.h"
#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/table_time.h"
#include "benchmarks/tournament.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/device/pool.h"
#include "src/figures/heat_map.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLatencyBytes = 8;
constexpr int kLatencyIterations = 10;  // factor applied to --iterations
// Larger matrices are not printed, only written to files.
constexpr int kMostPrinted = 16;
// The number of columns that fit a terminal of 80 columns.
constexpr int kColumnsAtOnce = 5;

// PairsMeasured holds the results, which are the same on all ranks.
struct PairsMeasured {
  PairMatrix bandwidth;  // bytes per second
  PairMatrix latency;    // seconds
};

class PairsBench {
 public:
  PairsBench(const BenchPairsOptions& options, MpiSession& session)
      : options_(options),
        comm_(session.make_world(options.backend)),
        pool_(Device::cpu(), comm_->memory()),
        buffer_(pool_.allocate(std::max(options.bytes, kLatencyBytes))) {
    for (const RankPlace& place : session.places()) {
      if (!options.by_host || place.local_rank == 0) {
        members_.push_back(place.rank);
        hosts_.push_back(place.node);
      }
    }
    if (members_.size() < 2) {
      throw ConfigError(fmt::format("bench pairs needs at least two {}",
                                    options.by_host
                                        ? "hosts: start ranks on more hosts, or omit --by host"
                                        : "ranks: start more with mpirun or srun"));
    }
    std::memset(buffer_.data(), 0, static_cast<std::size_t>(buffer_.bytes()));
  }

  PairsMeasured run() {
    const auto rounds = tournament(size());
    BenchProgress progress("bench pairs", static_cast<std::int64_t>(rounds.size()), speaks());
    progress.stage("every pair, many at a time");
    const AgreedClock clock = agreed_clock(*comm_);
    // With a duration, the first pass is as short as can be: it tells how long the next may be.
    int windows = options_.duration > 0 ? 1 : options_.iterations;
    for (Sampling sampling(rule(), comm_.get()); sampling.more(passes_); ++passes_) {
      const double begin = clock();
      for (const auto& round : rounds) {
        comm_->barrier().wait();
        for (const auto& [a, b] : round) {
          if (member(a) == comm_->rank() || member(b) == comm_->rank()) {
            meet(a, b, windows);
          }
        }
        progress.done();
      }
      windows_taken_ += windows;
      windows = next_windows(windows, clock() - begin);
    }
    progress.finish();
    PairsMeasured all{PairMatrix(size()), PairMatrix(size())};
    for (const auto& [pair, seconds] : windows_) {
      all.bandwidth.at(pair.first, pair.second) =
          static_cast<double>(options_.bytes) * options_.window / median(seconds);
    }
    for (const auto& [pair, seconds] : latencies_) {
      all.latency.at(pair.first, pair.second) = all.latency.at(pair.second, pair.first) =
          median(seconds);
    }
    for (PairMatrix* matrix : {&all.bandwidth, &all.latency}) {
      const auto count = static_cast<std::int64_t>(matrix->values.size());
      comm_->all_reduce({matrix->values.data(), count, DType::f64}, ReduceOp::sum).wait();
    }
    return all;
  }

  HowMeasured how_measured() const {
    return {.warmup = options_.warmup,
            .stop = rule(),
            .sample =
                "a pass over all pairs; params.iterations is the number of windows of each "
                "direction in all passes",
            .synchronized_by = "a barrier before each round of pairs; then by the messages"};
  }
  std::size_t passes() const { return passes_; }
  std::int64_t windows() const { return windows_taken_; }
  int size() const { return static_cast<int>(members_.size()); }
  bool speaks() const { return comm_->rank() == 0; }
  int world_size() const { return comm_->size(); }
  const std::vector<int>& members() const { return members_; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  std::string name(int i) const {
    return fmt::format("rank {} (host {})", member(i), hosts_[static_cast<std::size_t>(i)]);
  }

 private:
  using Times = std::map<std::pair<int, int>, std::vector<double>>;

  StopRule rule() const {
    StopRule rule = StopRule::count_or_duration(1, options_.duration);
    rule.least = 1;  // one pass gives an answer for every pair
    return rule;
  }
  // Chooses the windows of the next pass so that it lasts a tenth of the duration. seconds: of the
  // last pass.
  int next_windows(int windows, double seconds) const {
    constexpr double kPart = 0.1;
    const double fitting = windows * kPart * options_.duration / std::max(seconds, 1e-9);
    return options_.duration > 0 ? static_cast<int>(std::clamp(
                                       fitting, 1.0, static_cast<double>(options_.iterations)))
                                 : windows;
  }
  static void add(std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  int member(int i) const { return members_[static_cast<std::size_t>(i)]; }

  // Measures latency, then the bandwidth in one direction, then in the other. Only the rank that
  // sends first records the time.
  void meet(int a, int b, int windows) {
    const bool is_a = member(a) == comm_->rank();
    PointToPoint how{.peer = is_a ? member(b) : member(a),
                     .sends = is_a,
                     .warmup = std::min(options_.warmup, windows),
                     .iterations = windows * kLatencyIterations};
    const View few = buffer_.view(DType::u8).slice(0, kLatencyBytes);
    const std::vector<double> latency = latency_seconds(*comm_, few, few, how);
    if (is_a) {
      add(latencies_[{a, b}], latency);
    }
    how.iterations = windows;
    for (const bool from_a : {true, false}) {
      how.sends = is_a == from_a;
      const View data = buffer_.view(DType::u8).slice(0, options_.bytes);
      const std::vector<double> seconds = window_seconds(*comm_, data, options_.window, how);
      if (how.sends) {
        add(windows_[from_a ? std::pair(a, b) : std::pair(b, a)], seconds);
      }
    }
  }

  BenchPairsOptions options_;
  std::unique_ptr<Communicator> comm_;
  std::vector<int> members_;        // the ranks that are paired
  std::vector<std::string> hosts_;  // their nodes, as Slurm names them
  Pool pool_;
  Buffer buffer_;
  std::size_t passes_ = 0;
  std::int64_t windows_taken_ = 0;  // of each direction of a pair
  Times latencies_;                 // seconds of the pairs (lower, higher) that this rank timed
  Times windows_;                   // seconds of (from, to)
};

PairMatrix scaled(const PairMatrix& matrix, double factor) {
  PairMatrix out = matrix;
  for (double& value : out.values) {
    value *= factor;
  }
  for (int i = 0; i < out.size; ++i) {
    out.at(i, i) = std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

Json rows_of(const PairMatrix& matrix) {
  Json rows = Json::array();
  for (int from = 0; from < matrix.size; ++from) {
    Json row = Json::array();
    for (int to = 0; to < matrix.size; ++to) {
      row.push_back(matrix.at(from, to));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Prints the columns [first, last).
void print_columns(const PairMatrix& matrix, const PairsBench& bench, int first, int last) {
  fmt::print("# {:>6}  {:<20}", "rank", "host");
  for (int to = first; to < last; ++to) {
    fmt::print("  {:>8}", bench.members()[static_cast<std::size_t>(to)]);
  }
  fmt::print("\n");
  for (int from = 0; from < matrix.size; ++from) {
    const auto row = static_cast<std::size_t>(from);
    fmt::print("  {:>6}  {:<20}", bench.members()[row], bench.hosts()[row]);
    for (int to = first; to < last; ++to) {
      fmt::print("  {:>8}", from == to ? "-" : matrix_cell(matrix.at(from, to)));
    }
    fmt::print("\n");
  }
}

void print_matrix(const PairMatrix& matrix, const PairsBench& bench, const std::string& what) {
  fmt::print("# {}, row to column\n", what);
  for (int first = 0; first < matrix.size; first += kColumnsAtOnce) {
    print_columns(matrix, bench, first, std::min(first + kColumnsAtOnce, matrix.size));
  }
}

// Words the verdict on slow pairs, as text and as JSON.
class Verdict {
 public:
  Verdict(const BenchPairsOptions& options, const PairsBench& bench, const PairMatrix& bandwidth)
      : bench_(bench), median_(median(bandwidth.off_diagonal())), outliers_(outliers(bandwidth)) {
    if (options.threshold) {
      least_ = options.threshold->least(median_);
      failing_ = below(bandwidth, *least_);
    }
    suspect_ = common_member(options.threshold ? failing_ : outliers_);
  }

  RateUnit unit() const { return rate_unit(median_); }
  bool fails() const { return !failing_.empty(); }

  void print() const {
    fmt::print("# median {}\n", format_rate(median_, "B/s"));
    for (const SlowPair& pair : outliers_) {
      fmt::print("# outlier: {}, score {:.1f}\n", text(pair), pair.score);
    }
    for (const SlowPair& pair : failing_) {
      fmt::print("# below {}: {} FAILED\n", format_rate(*least_, "B/s"), text(pair));
    }
    if (suspect_) {
      fmt::print("# {} is part of each of these pairs\n", bench_.name(*suspect_));
    }
  }

  Json json() const {
    const auto list = [this](const std::vector<SlowPair>& pairs) {
      Json all = Json::array();
      for (const SlowPair& pair : pairs) {
        all.push_back({{"from", rank(pair.from)},
                       {"to", rank(pair.to)},
                       {"bandwidth_GBps", pair.value / 1e9},
                       {"score", pair.score}});
      }
      return all;
    };
    return {{"median_GBps", median_ / 1e9},
            {"threshold_GBps", least_ ? Json(*least_ / 1e9) : Json(nullptr)},
            {"outliers", list(outliers_)},
            {"failing", list(failing_)},
            {"suspect", suspect_ ? Json(rank(*suspect_)) : Json(nullptr)}};
  }

 private:
  int rank(int i) const { return bench_.members()[static_cast<std::size_t>(i)]; }
  std::string text(const SlowPair& pair) const {
    return fmt::format("{} to {}: {}", bench_.name(pair.from), bench_.name(pair.to),
                       format_rate(pair.value, "B/s"));
  }

  const PairsBench& bench_;
  double median_;
  std::vector<SlowPair> outliers_;
  std::optional<double> least_;
  std::vector<SlowPair> failing_;
  std::optional<int> suspect_;
};

void write_files(const BenchPairsOptions& options, const PairsBench& bench,
                 const PairMatrix& bandwidth, const RateUnit& unit) {
  if (!options.csv_file.empty()) {
    write_named_file(options.csv_file,
                     matrix_csv(scaled(bandwidth, 1e-9), bench.members(), bench.hosts()));
  }
  if (!options.svg_file.empty()) {
    HeatMap map{fmt::format("Bandwidth from row to column, {}, {}", name_of(options.backend),
                            format_bytes(options.bytes)),
                unit.name,
                {},
                scaled(bandwidth, 1 / unit.bytes_per_s).values};
    for (std::size_t i = 0; i < bench.members().size(); ++i) {
      map.labels.push_back(fmt::format("{} {}", bench.members()[i], bench.hosts()[i]));
    }
    write_named_file(options.svg_file, to_svg(map));
  }
}

}  // namespace

BenchPairsResult bench_pairs(const BenchPairsOptions& options, MpiSession& session) {
  PairsBench bench(options, session);
  const PairsMeasured measured = bench.run();
  const PairMatrix rates = scaled(measured.bandwidth, 1e-9);
  const PairMatrix latencies = scaled(measured.latency, 1e6);
  const Verdict verdict(options, bench, measured.bandwidth);
  if (bench.speaks()) {
    fmt::print("# Trireme pairs of {} {}, backend {}, {} per message, window {}\n", bench.size(),
               options.by_host ? "hosts" : "ranks", name_of(options.backend),
               format_bytes(options.bytes), options.window);
    if (bench.size() <= kMostPrinted) {
      const RateUnit unit = verdict.unit();
      print_matrix(scaled(measured.bandwidth, 1 / unit.bytes_per_s), bench,
                   fmt::format("Bandwidth ({})", unit.name));
      print_matrix(latencies, bench, "Latency (us)");
    }
    verdict.print();
    write_files(options, bench, measured.bandwidth, verdict.unit());
  }
  const Json params = {{"backend", name_of(options.backend)},
                       {"ranks", bench.world_size()},
                       {"by", options.by_host ? "host" : "rank"},
                       {"bytes", options.bytes},
                       {"window", options.window},
                       {"iterations", bench.windows()},
                       {"warmup", options.warmup},
                       {"passes", bench.passes()}};
  const Json entry = {{"name", "pairs"},
                      {"params", params},
                      {"metrics", verdict.json()},
                      {"measurement", to_json(bench.how_measured())},
                      {"samples", Json::object()},
                      {"matrices",
                       {{"members", bench.members()},
                        {"hosts", bench.hosts()},
                        {"bandwidth_GBps", rows_of(rates)},
                        {"latency_us", rows_of(latencies)}}}};
  return {Json::array({entry}), verdict.fails()};
}

}  // namespace trireme
