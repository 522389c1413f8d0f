#include "benchmarks/p2p/p2p.h"

#include <numeric>
#include <optional>

#include <nlohmann/json.hpp>

#include "benchmarks/device/measured_device.h"
#include "benchmarks/osu_table.h"
#include "benchmarks/p2p/point_to_point.h"
#include "benchmarks/progress.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "benchmarks/table_buffers.h"
#include "benchmarks/table_time.h"
#include "mpi/session/mpi_native.h"
#include "src/base/units.h"
#include "src/compute/device_context.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// From this size on, OSU makes fewer iterations.
constexpr std::int64_t kLargeMessage = 8192;
// With --duration: iterations between two looks at the clock, at most so many as last so long.
constexpr int kBatch = 100;
constexpr double kBatchSeconds = 0.02;
constexpr double kWarmupPart = 0.25;  // of a row's time, at most
// Messages up to about this size take equally long.
constexpr double kLatencyBound = 65536;

// Times of two ranks, the same on all ranks, and how they were taken.
struct PairTimes {
  std::vector<double> seconds;  // one for each iteration
  int warmup = 0;               // iterations before them
  StopRule stop;
};

class P2pBench {
 public:
  P2pBench(const BenchP2pOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        group_(session, options.backend, options.device),
        context_(options.device, 1, comm().memory()),
        buffers_(control(), {.device = options.device,
                             .local_ranks = session.place().local_size,
                             .clear = [this](const View& view) { clear(view); }}),
        answer_(context_.exchange().allocate(size_of(DType::u32))),
        progress_("bench p2p", rows(), comm().rank() == 0) {
    if (options.peer_mpi) {
      mpi_.emplace(session);
    }
    (void)buffers_.add(context_.exchange().source());
  }

  BenchP2pResult run() {
    BenchP2pResult result{Json::array(), 0, {}};
    const AgreedClock clock = agreed_clock(control());
    std::int64_t left = tables();
    const auto seconds = [&] { return table_seconds(options_.duration, clock(), left--); };
    if (options_.latency) {
      say(fmt::format("# Trireme latency test between ranks {} and {}, backend {}\n",
                      options_.first, options_.second, backend()));
      say(osu_title("Latency", "MPI_CHAR") +
          osu_columns("Avg Latency(us)", true, options_.show_check));
      table("p2p_latency", 1, seconds(), result,
            [&](std::int64_t bytes, TableTime& limit) { latency(bytes, limit, result); });
    }
    if (options_.bandwidth) {
      say(fmt::format("# Trireme bandwidth test between ranks {} and {}, backend {}, window {}\n",
                      options_.first, options_.second, backend(), options_.window));
      say(osu_title("Bandwidth", "MPI_CHAR") +
          osu_columns("Bandwidth (MB/s)", true, options_.show_check));
      table("p2p_bw", options_.window, seconds(), result,
            [&](std::int64_t bytes, TableTime& limit) { bandwidth(bytes, limit, result); });
    }
    return result;
  }

 private:
  Communicator& comm() const { return group_.data(); }
  Communicator& control() const { return group_.control(); }
  bool on_gpu() const { return options_.device.kind == DeviceKind::cuda; }
  std::int64_t tables() const { return (options_.latency ? 1 : 0) + (options_.bandwidth ? 1 : 0); }
  std::string_view backend() const { return on_gpu() ? "nccl" : name_of(options_.backend); }
  bool takes_part() const {
    return comm().rank() == options_.first || comm().rank() == options_.second;
  }
  bool sends() const { return comm().rank() == options_.first; }
  void say(const std::string& text) { progress_.print(text); }
  std::string row(std::int64_t bytes, double value, std::int64_t wrong) const {
    return osu_row(bytes, value, options_.show_check ? std::optional(wrong) : std::nullopt);
  }
  View data(std::int64_t bytes) const { return buffers_.first().view(DType::u8).slice(0, bytes); }
  // What the latency test sends. As in OSU's, it is not what arrived.
  View out(std::int64_t bytes) const { return buffers_.second().view(DType::u8).slice(0, bytes); }
  void clear(const View& view) {
    context_.stream().clear(view);
    context_.stream().synchronize();
  }
  void note_peer(std::int64_t bytes, double ours, double peer, double ratio) {
    peer_lines_ += fmt::format("# {:<{}}{:>{}.2f}{:>{}.2f}{:>{}.2f}\n", bytes, kOsuSizeWidth - 2,
                               ours, kOsuValueWidth, peer, kOsuValueWidth, ratio, kOsuValueWidth);
  }
  // Says what MPI's own calls reached, in lines that readers of OSU's tables take as comments.
  void say_peer() {
    if (mpi_) {
      say(fmt::format("# {:<{}}{:>{}}{:>{}}{:>{}}\n", "Size", kOsuSizeWidth - 2, "Trireme",
                      kOsuValueWidth, "MPI itself", kOsuValueWidth, "times faster",
                      kOsuValueWidth) +
          peer_lines_);
      peer_lines_.clear();
    }
  }

  template <class Visit>
  void over_sizes(Visit visit) const {
    for (std::int64_t bytes = options_.min_bytes; bytes <= options_.max_bytes;
         bytes = bytes == 0 ? 1 : 2 * bytes) {
      visit(bytes);
    }
  }

  // Measures the sizes for which there is time. Each test has the same part of it.
  template <class Measure>
  void table(const char* name, int messages, double seconds, BenchP2pResult& result,
             Measure measure) {
    TableTime limit(seconds, rows() / tables(), agreed_clock(control()));
    over_sizes([&](std::int64_t bytes) {
      const double work = kLatencyBound + static_cast<double>(bytes) * messages;
      if (limit.begins(format_bytes(bytes), work) && buffers_.holds(format_bytes(bytes), bytes)) {
        measure(bytes, limit);
      } else {
        result.left_out.push_back(fmt::format("{} {}", name, format_bytes(bytes)));
      }
      progress_.done();
    });
    say_peer();
    say(limit.text() + buffers_.text());
  }

  PointToPoint plan(std::int64_t bytes, int small, int large, int small_warmup, int large_warmup) {
    const bool is_large = bytes > kLargeMessage;
    return {
        .peer = sends() ? options_.second : options_.first,
        .sends = sends(),
        .warmup = options_.warmup >= 0 ? options_.warmup : (is_large ? large_warmup : small_warmup),
        .iterations = options_.iterations > 0 ? options_.iterations : (is_large ? large : small),
        .answer = on_gpu() ? answer_.view(DType::u32) : View()};
  }

  // Runs measure(how) on the two ranks while the others wait: once, or with --duration in batches
  // until the seconds are over.
  template <class Measure>
  PairTimes among_two(const PointToPoint& how, double seconds, Measure measure) {
    const auto batch = [&](int warmup, int iterations) {
      PointToPoint some = how;
      some.warmup = warmup;
      some.iterations = iterations;
      control().barrier().wait();
      std::vector<double> times(static_cast<std::size_t>(iterations), 0);
      if (takes_part()) {
        times = measure(some);
      }
      control().all_reduce({times.data(), iterations, DType::f64}, ReduceOp::max).wait();
      return times;
    };
    if (options_.duration <= 0) {
      return {batch(how.warmup, how.iterations), how.warmup,
              StopRule::count_or_duration(how.iterations, 0)};
    }
    PairTimes all;
    int next = 1;  // the first messages tell how many fit between two looks at the clock
    Sampling warming({.least = 0, .most = how.warmup, .seconds = kWarmupPart * seconds},
                     &control());
    while (warming.more(static_cast<std::size_t>(all.warmup))) {
      const auto times = batch(0, std::min(next, how.warmup - all.warmup));
      all.warmup += static_cast<int>(times.size());
      next = batch_after(times, how);
    }
    all.stop = StopRule::count_or_duration(1, (1 - kWarmupPart) * seconds);
    for (Sampling sampling(all.stop, &control()); sampling.more(all.seconds.size());) {
      const auto times = batch(0, next);
      all.seconds.insert(all.seconds.end(), times.begin(), times.end());
      next = batch_after(times, how);
    }
    return all;
  }

  static int batch_after(const std::vector<double>& times, const PointToPoint& how) {
    const double mean =
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    const int most = std::min(how.iterations, kBatch);
    return mean * most <= kBatchSeconds ? most
                                        : std::max(static_cast<int>(kBatchSeconds / mean), 1);
  }
  // Returns the number of rows of both tables.
  std::int64_t rows() const {
    std::int64_t rows = 0;
    over_sizes(
        [&](std::int64_t) { rows += (options_.latency ? 1 : 0) + (options_.bandwidth ? 1 : 0); });
    return rows;
  }
  // Returns the seconds for the next way to send messages, one of so many that are to come.
  double share(const TableTime& limit, int ways) const { return limit.left() / ways; }
  static Json measurement(const PairTimes& times, const std::string& sample) {
    return to_json({.warmup = times.warmup,
                    .stop = times.stop,
                    .sample = sample,
                    .synchronized_by = "a barrier before the first sample; then by the messages"});
  }

  void latency(std::int64_t bytes, TableTime& limit, BenchP2pResult& result);
  void bandwidth(std::int64_t bytes, TableTime& limit, BenchP2pResult& result);
  std::int64_t wrong_bytes(std::int64_t bytes);
  Json params(std::int64_t bytes, const PairTimes& times) const;

  BenchP2pOptions options_;
  MpiSession& session_;
  MeasuredGroup group_;
  DeviceContext context_;
  TableBuffers buffers_;
  Buffer answer_;
  TableProgress progress_;
  std::optional<MpiNative> mpi_;
  std::string peer_lines_;
};

// Sends a pattern there and back, and counts the wrong bytes on both ranks.
std::int64_t P2pBench::wrong_bytes(std::int64_t bytes) {
  const View data = this->data(bytes);
  std::int64_t wrong = 0;
  if (options_.check && takes_part()) {
    context_.write<unsigned char>(data, [&](unsigned char* pattern) {
      for (std::int64_t i = 0; i < data.count; ++i) {
        pattern[i] = static_cast<unsigned char>(sends() ? i % 251 : 255);
      }
    });
    (void)latency_seconds(
        comm(), data, data,
        {.peer = sends() ? options_.second : options_.first, .sends = sends(), .iterations = 1});
    const std::vector<unsigned char> received = context_.read<unsigned char>(data);
    for (std::size_t i = 0; i < received.size(); ++i) {
      wrong += received[i] == i % 251 ? 0 : 1;
    }
  }
  return all_reduce_value(control(), wrong, ReduceOp::sum);
}

Json P2pBench::params(std::int64_t bytes, const PairTimes& times) const {
  const auto node = [this](int rank) {
    return session_.places()[static_cast<std::size_t>(rank)].node;
  };
  return {{"bytes", bytes},
          {"backend", backend()},
          {"ranks", comm().size()},
          {"pair", {options_.first, options_.second}},
          {"hosts", {node(options_.first), node(options_.second)}},
          {"iterations", times.seconds.size()},
          {"warmup", times.warmup}};
}

void P2pBench::latency(std::int64_t bytes, TableTime& limit, BenchP2pResult& result) {
  progress_.measuring(fmt::format("latency, {}", format_bytes(bytes)));
  const std::int64_t wrong = wrong_bytes(bytes);
  const PointToPoint how = plan(bytes, 10000, 1000, 100, 10);
  const PairTimes times = among_two(how, share(limit, mpi_ ? 2 : 1), [&](const PointToPoint& some) {
    return latency_seconds(comm(), out(bytes), data(bytes), some);
  });
  const std::vector<double>& seconds = times.seconds;
  double spare = spare_seconds(seconds, 2);  // there and back
  const auto count = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  const MedianInterval median = median_interval(seconds);
  say(row(bytes, mean * 1e6, wrong));
  result.wrong += wrong;
  Json metrics = {{"mean_us", mean * 1e6},
                  {"median_us", median.median * 1e6},
                  {"median_us_low", median.low * 1e6},
                  {"median_us_high", median.high * 1e6},
                  {"wrong", wrong}};
  Json samples = {{"time_us", samples_json(multiplied(seconds, 1e6), {})}};
  if (mpi_) {
    const std::vector<double> peer = among_two(how, share(limit, 1), [&](const PointToPoint& some) {
                                       return latency_seconds(*mpi_, out(bytes), data(bytes), some);
                                     }).seconds;
    spare += spare_seconds(peer, 2);
    const double peer_mean =
        std::accumulate(peer.begin(), peer.end(), 0.0) / static_cast<double>(peer.size());
    metrics["peer_mean_us"] = peer_mean * 1e6;
    metrics["peer_median_us"] = median_interval(peer).median * 1e6;
    metrics["ratio"] = peer_mean / mean;
    samples["peer_time_us"] = samples_json(multiplied(peer, 1e6), {});
    note_peer(bytes, mean * 1e6, peer_mean * 1e6, peer_mean / mean);
  }
  add_row(result.results,
          {{"name", "p2p_latency"},
           {"params", params(bytes, times)},
           {"metrics", metrics},
           {"measurement", measurement(times, "half of a round trip")},
           {"samples", samples}},
          options_.rows);
  limit.ends(spare);
}

void P2pBench::bandwidth(std::int64_t bytes, TableTime& limit, BenchP2pResult& result) {
  progress_.measuring(fmt::format("bandwidth, {}", format_bytes(bytes)));
  const std::int64_t wrong = wrong_bytes(bytes);
  const PointToPoint how = plan(bytes, 100, 20, 10, 2);
  const PairTimes times = among_two(how, share(limit, mpi_ ? 2 : 1), [&](const PointToPoint& some) {
    return window_seconds(comm(), data(bytes), options_.window, some);
  });
  const std::vector<double>& seconds = times.seconds;
  double spare = spare_seconds(seconds, 1);
  const double window_bytes = static_cast<double>(bytes) * options_.window;
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double rate = window_bytes * static_cast<double>(seconds.size()) / total;
  const MedianInterval median = median_interval(seconds);
  say(row(bytes, rate / 1e6, wrong));
  result.wrong += wrong;
  Json all = params(bytes, times);
  all["window"] = options_.window;
  Json metrics = {{"bandwidth_GBps", rate / 1e9},
                  {"median_GBps", window_bytes / median.median / 1e9},
                  {"median_GBps_low", window_bytes / median.high / 1e9},
                  {"median_GBps_high", window_bytes / median.low / 1e9},
                  {"wrong", wrong}};
  Json samples = {{"time_us", samples_json(multiplied(seconds, 1e6), {})}};
  if (mpi_) {
    const std::vector<double> peer =
        among_two(how, share(limit, 1), [&](const PointToPoint& some) {
          return window_seconds(*mpi_, data(bytes), options_.window, some);
        }).seconds;
    spare += spare_seconds(peer, 1);
    const double peer_rate = window_bytes * static_cast<double>(peer.size()) /
                             std::accumulate(peer.begin(), peer.end(), 0.0);
    metrics["peer_bandwidth_GBps"] = peer_rate / 1e9;
    metrics["peer_median_GBps"] = window_bytes / median_interval(peer).median / 1e9;
    metrics["ratio"] = rate / peer_rate;
    samples["peer_time_us"] = samples_json(multiplied(peer, 1e6), {});
    note_peer(bytes, rate / 1e6, peer_rate / 1e6, rate / peer_rate);
  }
  add_row(result.results,
          {{"name", "p2p_bw"},
           {"params", all},
           {"metrics", metrics},
           {"measurement", measurement(times, "a window of messages and the answer")},
           {"samples", samples}},
          options_.rows);
  limit.ends(spare);
}

}  // namespace

BenchP2pResult bench_p2p(const BenchP2pOptions& options, MpiSession& session) {
  const int size = session.world().size();
  if (size < 2) {
    throw ConfigError(
        "bench p2p measures between two ranks: start it with mpirun -n 2 or srun -n 2");
  }
  if (options.first == options.second || options.first >= size || options.second >= size) {
    throw ConfigError(fmt::format("--pair {},{}: name two different ranks of 0 to {}",
                                  options.first, options.second, size - 1));
  }
  if (options.device.kind == DeviceKind::cuda && options.peer_mpi) {
    throw ConfigError("--peer mpi measures memory of the host: measure GPUs without it");
  }
  return P2pBench(options, session).run();
}

}  // namespace trireme
