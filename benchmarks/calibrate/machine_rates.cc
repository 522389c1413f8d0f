#include "benchmarks/calibrate/machine_rates.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/coll/coll.h"
#include "benchmarks/gemm/gemm.h"
#include "benchmarks/io/io.h"
#include "benchmarks/mem/mem.h"
#include "benchmarks/p2p/p2p.h"
#include "benchmarks/per_node.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr std::int64_t kLargeSquare = 1024;
constexpr std::int64_t kSmallSquare = 16;  // takes no longer than to begin and end
constexpr std::int64_t kFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kArrayBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLargeArray = std::int64_t{16} << 20;  // of a sum over ranks
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// What libraries, threads and transports take once a run has started (docs/parallelism.md).
constexpr std::int64_t kLaterBytes = 56 * kMiB;

void demand_correct(std::int64_t wrong, const char* what) {
  if (wrong > 0) {
    throw DeviceError(fmt::format("{} came out wrong: run trireme bench {} alone", wrong, what));
  }
}

// Rounds a figure to four digits, which people can read.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

class RatesBench {
 public:
  RatesBench(const Cluster& base, const MachineRatesOptions& options, AppContext& context)
      : options_(options), context_(context), session_(context.session()), rates_{base, {}} {
    for (const RankPlace& place : session_.places()) {
      hosts_.insert(place.host);
      if (place.local_size != session_.place().local_size) {
        unequal_ = true;
      }
    }
  }

  MachineRates run();

 private:
  int ranks() const { return session_.world().size(); }
  int per_node() const { return session_.place().local_size; }
  double part(double share) const { return share * options_.seconds; }
  void set(const char* key, double& figure, double value, const std::string& remark) {
    figure = rounded(value);
    rates_.remarks[key] = remark;
  }
  void describe();
  void products();
  void memory();
  void links();
  void network();
  void storage();
  // Returns GB/s and microseconds of messages between two ranks. Collective.
  std::pair<double, double> messages(int first, int second, double seconds) const;
  // Returns GB/s of each rank in a ring sum over all ranks. Collective.
  double sum_rate(double seconds) const;

  const MachineRatesOptions& options_;
  AppContext& context_;
  MpiSession& session_;
  MachineRates rates_;
  std::set<std::string> hosts_;
  bool unequal_ = false;
};

void RatesBench::describe() {
  if (unequal_) {
    throw ConfigError(
        "the hosts have different numbers of ranks: a cluster file describes equal nodes, so start "
        "as many ranks on each, or calibrate each kind of node alone");
  }
  Cluster& c = rates_.cluster;
  c.nodes = static_cast<int>(std::ssize(hosts_));
  c.device.kind = "cpu";
  c.device.per_node = per_node();
  c.device.compute_units = 0;
  const AvailableMemory free = available_memory();
  // Memory is given in whole MiB. This process already holds its part of what is not available.
  const std::int64_t own = resident_bytes();
  c.device.reserved_memory = (own + kLaterBytes) / kMiB * kMiB;
  c.device.memory =
      std::max((free.bytes / per_node() + own) / kMiB * kMiB, c.device.reserved_memory + kMiB);
  rates_.remarks["device.memory"] =
      fmt::format("available to each of {}: {}", counted(per_node(), "rank"), free.source);
  rates_.remarks["device.reserved_memory"] =
      "resident after the start, and what a run loads later (docs/parallelism.md)";
  rates_.remarks["device.per_node"] = "ranks per host in this measurement";
  rates_.remarks["nodes"] = "hosts in this measurement";
}

void RatesBench::products() {
  BenchGemmOptions options;
  options.sizes = {kSmallSquare, kLargeSquare};
  options.shapes = options_.shapes;
  options.threads = options_.threads;
  options.duration = part(0.35);
  const BenchGemmResult result = bench_gemm(options, session_);
  demand_correct(result.wrong, "gemm");
  double best_bf16 = 0;
  double best_fp32 = 0;
  double flops = 0;
  double seconds = 0;
  double launch = 0;
  for (const Json& entry : result.results) {
    const Json& params = entry.at("params");
    const double rate = entry.at("metrics").at("flops_per_s").get<double>() / ranks();
    const bool is_bf16 = params.at("precision") == "bf16";
    double& best = is_bf16 ? best_bf16 : best_fp32;
    best = std::max(best, rate);
    const double time = kMicro * entry.at("metrics").at("time_us").get<double>();
    if (params.at("m") == kSmallSquare) {
      launch = std::max(launch, time);
    } else if (is_bf16 && params.at("layer") != "square") {
      flops += rate * time;
      seconds += time;
    }
  }
  Cluster& c = rates_.cluster;
  const std::string all = counted(std::ssize(result.results), "product");
  set("device.bf16_tflops", c.device.bf16_tflops, best_bf16 / kTera,
      "bench gemm: the best of " + all + " in bf16 and fp32");
  set("device.fp32_tflops", c.device.fp32_tflops, best_fp32 / kTera, "the same");
  set("device.launch_us", c.device.launch_us, launch / kMicro,
      fmt::format("bench gemm: a product of {} x {} x {}", kSmallSquare, kSmallSquare,
                  kSmallSquare));
  if (seconds > 0) {
    set("efficiency.products", c.efficiency.products, std::min(1.0, flops / seconds / best_bf16),
        "bench gemm: the models' shapes together, in bf16");
  }
}

void RatesBench::memory() {
  const Json results = on_each_node(context_, SecondRank::waits, [&] {
                         BenchMemOptions options;
                         options.bytes = kArrayBytes;
                         options.latency = false;
                         options.duration = part(0.2);
                         const BenchMemResult own = bench_mem(options);
                         demand_correct(own.wrong, "mem");
                         return NodeReport{own.results, ""};
                       }).results;
  double best = 0;
  double triad = 0;
  for (const Json& entry : results) {
    if (!entry.at("params").at("numa_node").is_null()) {
      continue;
    }
    const double rate = entry.at("metrics").at("bytes_per_s").get<double>();
    best = std::max(best, rate);
    if (entry.at("params").at("kernel") == "triad" &&
        entry.at("params").at("stores") == "ordinary") {
      triad = triad == 0 ? rate : std::min(triad, rate);
    }
  }
  Cluster& c = rates_.cluster;
  set("device.memory_gb_per_s", c.device.memory_gb_per_s, best / per_node() / kGiga,
      fmt::format("bench mem: the best kernel of STREAM on all cores, divided among {}",
                  counted(per_node(), "rank")));
  set("efficiency.memory", c.efficiency.memory, std::min(1.0, triad / best),
      "bench mem: triad with ordinary stores");
}

std::pair<double, double> RatesBench::messages(int first, int second, double seconds) const {
  std::pair<double, double> found;
  for (const bool latency : {true, false}) {
    BenchP2pOptions options;
    options.first = first;
    options.second = second;
    options.latency = latency;
    options.bandwidth = !latency;
    options.min_bytes = options.max_bytes = latency ? 8 : kMiB;
    options.iterations = 20;  // between two looks at the clock
    options.warmup = 2;
    options.duration = seconds / 2;
    const BenchP2pResult result = bench_p2p(options, session_);
    demand_correct(result.wrong, "p2p");
    const Json& metrics = result.results.at(0).at("metrics");
    if (latency) {
      found.second = metrics.at("median_us").get<double>();
    } else {
      found.first = metrics.at("median_GBps").get<double>();
    }
  }
  return found;
}

double RatesBench::sum_rate(double seconds) const {
  BenchCollOptions options;
  options.min_bytes = options.max_bytes = kLargeArray;
  options.turns.seconds = seconds;
  const BenchCollResult result = bench_coll(options, session_);
  demand_correct(result.wrong, "coll");
  return result.results.at(0).at("metrics").at("busbw_GBps").get<double>();
}

void RatesBench::links() {
  Cluster& c = rates_.cluster;
  const auto [rate, latency] = messages(0, 1, part(0.1));
  const bool is_all = hosts_.size() == 1;
  const double sums = is_all ? sum_rate(part(0.15)) : rate;
  const double best = std::max(rate, sums);
  set("links.gb_per_s", c.links.gb_per_s, best,
      is_all ? "bench p2p and coll: the better of messages and sums" : "bench p2p: ranks 0 and 1");
  set("links.latency_us", c.links.latency_us, latency, "bench p2p: 8 bytes between ranks 0 and 1");
  set("efficiency.links", c.efficiency.links, sums / best,
      is_all ? fmt::format("bench coll: an all-reduce of {}", format_bytes(kLargeArray))
             : "no sum within a node was measured");
}

void RatesBench::network() {
  Cluster& c = rates_.cluster;
  const auto& places = session_.places();
  const auto other = std::find_if(places.begin(), places.end(), [&](const RankPlace& place) {
    return place.host != places.front().host;
  });
  const auto [rate, latency] = messages(0, other->rank, part(0.1));
  // In a ring over all ranks, each node sends at the rate of the network.
  const double sums = sum_rate(part(0.15));
  const double best = std::max(rate, sums);
  set("network.gb_per_s", c.network.gb_per_s, best, "bench p2p and coll: the better of both");
  set("network.latency_us", c.network.latency_us, latency, "bench p2p: 8 bytes between two hosts");
  set("efficiency.network", c.efficiency.network, sums / best,
      fmt::format("bench coll: an all-reduce of {} over all ranks", format_bytes(kLargeArray)));
}

void RatesBench::storage() {
  BenchIoOptions options;
  options.folder = options_.folder;
  options.metadata = false;
  options.layout.file_per_process = true;
  options.layout.block_bytes = kFileBytes;
  options.fsync = true;
  options.reorder = ranks() > 1;
  options.stonewall = std::max(part(0.02), 0.01);
  options.duration = part(0.2);
  const BenchIoResult result = bench_io(options, session_);
  demand_correct(result.wrong, "io");
  Cluster& c = rates_.cluster;
  for (const Json& entry : result.results) {
    const double rate = entry.at("metrics").at("bytes_per_s").get<double>() / kGiga;
    if (entry.at("name") == "io_write") {
      set("storage.write_gb_per_s", c.storage.write_gb_per_s, rate,
          "bench io: a file per rank, synced");
    } else if (entry.at("name") == "io_read") {
      set("storage.read_gb_per_s", c.storage.read_gb_per_s, rate, "bench io: the same files");
    }
  }
}

MachineRates RatesBench::run() {
  describe();
  products();
  memory();
  if (per_node() > 1) {
    links();
  }
  if (hosts_.size() > 1) {
    network();
  }
  storage();
  // Transfers and computing share the cores, so what is hidden shows in the factors of calibration.
  rates_.cluster.efficiency.overlap = 0;
  rates_.remarks["efficiency.overlap"] = "contained in calibration.replicas and .pipeline";
  return rates_;
}

}  // namespace

MachineRates measure_machine(const Cluster& base, const MachineRatesOptions& options,
                             AppContext& context) {
  return RatesBench(base, options, context).run();
}

}  // namespace trireme
