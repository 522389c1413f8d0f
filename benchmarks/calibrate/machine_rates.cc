#include "benchmarks/calibrate/machine_rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/calibrate/link_rates.h"
#include "benchmarks/device/measured_device.h"
#include "benchmarks/gemm/gemm.h"
#include "benchmarks/io/io.h"
#include "benchmarks/mem/device_memory.h"
#include "benchmarks/mem/mem.h"
#include "benchmarks/per_node.h"
#include "mpi/nccl/nccl_world.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/compute/device_context.h"
#include "src/device/cuda_device.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr std::int64_t kSmallSquare = 16;  // takes no longer than to begin and end
constexpr std::int64_t kFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// What libraries, threads and transports take once a run has started (docs/parallelism.md).
constexpr std::int64_t kLaterBytes = 56 * kMiB;

// Sums over the products of one precision.
struct ProductSums {
  double best = 0;  // FLOP/s of a rank
  double flops = 0;
  double seconds = 0;  // of the models' shapes
  double efficiency() const { return std::min(1.0, flops / seconds / best); }
};

// Rounds a figure to four digits, which people can read.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

class RatesBench {
 public:
  RatesBench(const Cluster& base, const MachineRatesOptions& options, AppContext& context)
      : options_(options),
        context_(context),
        session_(context.session()),
        device_(measured_device(options.device, context)),
        sizes_(on_gpu() ? options.on_gpu : kSizesOnCpu),
        rates_{base, {}} {
    for (const RankPlace& place : session_.places()) {
      hosts_.insert(place.host);
      if (place.local_size != session_.place().local_size) {
        unequal_ = true;
      }
    }
  }

  MachineRates run();

 private:
  bool on_gpu() const { return device_.kind == DeviceKind::cuda; }
  int ranks() const { return session_.world().size(); }
  int per_node() const { return session_.place().local_size; }
  Connections connections() const {
    return {session_, device_, on_gpu() ? options_.sum_order : SumOrder::tree, sizes_.transfers};
  }
  double part(double share) const { return share * options_.seconds; }
  void set(const char* key, double& figure, double value, const std::string& remark) {
    figure = rounded(value);
    rates_.remarks[key] = remark;
  }
  void describe();
  void describe_processors();
  void describe_gpus();
  void reserve_on_gpus();
  void products();
  void memory();
  void memory_of_gpus();
  void links();
  void network();
  void storage();
  const MachineRatesOptions& options_;
  AppContext& context_;
  MpiSession& session_;
  Device device_;
  RatesSizes sizes_;
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
  c.device.per_node = per_node();
  rates_.remarks["device.per_node"] = "ranks per host in this measurement";
  rates_.remarks["nodes"] = "hosts in this measurement";
  if (on_gpu()) {
    describe_gpus();
  } else {
    describe_processors();
  }
}

void RatesBench::describe_processors() {
  Cluster& c = rates_.cluster;
  c.device.kind = "cpu";
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
}

void RatesBench::describe_gpus() {
  Cluster& c = rates_.cluster;
  const cuda::DeviceFacts facts = cuda::device_facts(device_.index);
  c.device.kind = "gpu";
  c.device.type = facts.name;
  c.device.compute_units = facts.multiprocessors;
  c.device.memory = facts.bytes / kMiB * kMiB;
  rates_.remarks["device.type"] = "as its driver calls it";
  rates_.remarks["device.compute_units"] = "multiprocessors, by the driver";
  rates_.remarks["device.memory"] = "that of the GPU, by the driver";
}

// Called after all measurements, when nothing of the device is in use but what its context and the
// libraries keep.
void RatesBench::reserve_on_gpus() {
  const cuda::DeviceFacts facts = cuda::device_facts(device_.index);
  const std::int64_t taken =
      all_reduce_value(session_.world(), facts.bytes - facts.free_bytes, ReduceOp::max);
  const std::int64_t connections = nccl_group_bytes(ranks()) + nccl_transfer_bytes(ranks());
  Cluster::Device& device = rates_.cluster.device;
  device.reserved_memory = std::min((taken + connections) / kMiB * kMiB, device.memory - kMiB);
  rates_.remarks["device.reserved_memory"] =
      fmt::format("in use after all measurements, and {} for the connections of a run",
                  format_bytes(connections));
}

void RatesBench::products() {
  BenchGemmOptions options;
  options.device = device_;
  options.sizes = {kSmallSquare, sizes_.square};
  if (on_gpu() && options_.fp8) {
    options.precisions.emplace_back("fp8");
  }
  options.shapes = options_.shapes;
  options.threads = options_.threads;
  options.duration = part(0.35);
  const BenchGemmResult result = bench_gemm(options, session_);
  demand_correct(result.wrong, "gemm");
  std::map<std::string, ProductSums> by_precision;
  double launch = 0;
  for (const Json& entry : result.results) {
    const Json& params = entry.at("params");
    const double rate = entry.at("metrics").at("flops_per_s").get<double>() / ranks();
    ProductSums& sums = by_precision[params.at("precision").get<std::string>()];
    sums.best = std::max(sums.best, rate);
    const double time = kMicro * entry.at("metrics").at("time_us").get<double>();
    if (params.at("m") == kSmallSquare) {
      launch = std::max(launch, params.at("precision") == "fp8" ? 0 : time);
    } else if (params.at("layer") != "square") {
      sums.flops += rate * time;
      sums.seconds += time;
    }
  }
  Cluster& c = rates_.cluster;
  const std::string all = counted(std::ssize(result.results), "product");
  set("device.bf16_tflops", c.device.bf16_tflops, by_precision["bf16"].best / kTera,
      "bench gemm: the best of " + all + " in all precisions");
  set("device.fp32_tflops", c.device.fp32_tflops, by_precision["fp32"].best / kTera, "the same");
  set("device.launch_us", c.device.launch_us, launch / kMicro,
      fmt::format("bench gemm: a product of {} x {} x {}{}", kSmallSquare, kSmallSquare,
                  kSmallSquare, on_gpu() ? ", one after the other" : ""));
  if (by_precision["bf16"].seconds > 0) {
    set("efficiency.products", c.efficiency.products, by_precision["bf16"].efficiency(),
        "bench gemm: the models' shapes together, in bf16");
  }
  if (const ProductSums fp8 = by_precision["fp8"]; fp8.seconds > 0) {
    set("device.fp8_tflops", c.device.fp8_tflops, fp8.best / kTera,
        "bench gemm: the best of them in fp8");
    set("efficiency.fp8_products", c.efficiency.fp8_products, fp8.efficiency(),
        "bench gemm: the models' shapes together, in fp8");
  }
}

// Two kernels: the device's own copies, and sums as the kernels of training compute them.
void RatesBench::memory_of_gpus() {
  const Json results = on_each_rank(context_, [&] {
                         DeviceContext computing(device_, 1);
                         const BenchMemResult own = bench_device_memory(
                             computing, {.bytes = sizes_.array_bytes, .duration = part(0.2)});
                         demand_correct(own.wrong, "mem");
                         return NodeReport{own.results, ""};
                       }).results;
  std::map<std::string, double> least;  // of the ranks, by kernel
  for (const Json& entry : results) {
    const double rate = entry.at("metrics").at("bytes_per_s").get<double>();
    double& slot = least[entry.at("params").at("kernel").get<std::string>()];
    slot = slot == 0 ? rate : std::min(slot, rate);
  }
  Cluster& c = rates_.cluster;
  const double best = std::max(least["copy"], least["add"]);
  set("device.memory_gb_per_s", c.device.memory_gb_per_s, best / kGiga,
      "bench mem: the better of copies and sums, on the slowest GPU");
  set("efficiency.memory", c.efficiency.memory, least["add"] / best, "bench mem: sums");
}

void RatesBench::memory() {
  if (on_gpu()) {
    memory_of_gpus();
    return;
  }
  const Json results = on_each_node(context_, SecondRank::waits, [&] {
                         BenchMemOptions options;
                         options.bytes = sizes_.array_bytes;
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

void RatesBench::links() {
  Cluster& c = rates_.cluster;
  const MessageRates pair = message_rates(connections(), 0, 1, part(0.1));
  const bool is_all = hosts_.size() == 1;
  const double sums = is_all ? sum_rate(connections(), part(0.15)) : pair.gb_per_s;
  const double best = std::max(pair.gb_per_s, sums);
  set("links.gb_per_s", c.links.gb_per_s, best,
      is_all ? "bench p2p and coll: the better of messages and sums" : "bench p2p: ranks 0 and 1");
  if (on_gpu() && is_all) {
    set("links.latency_us", c.links.latency_us, hop_latency(connections(), part(0.05)),
        "bench coll: an all-reduce of 8 bytes, per step");
  } else {
    set("links.latency_us", c.links.latency_us, pair.latency_us,
        "bench p2p: 8 bytes between ranks 0 and 1");
  }
  set("efficiency.links", c.efficiency.links, sums / best,
      is_all
          ? fmt::format("bench coll: an all-reduce of {}", format_bytes(sizes_.transfers.sum_bytes))
          : "no sum within a node was measured");
}

void RatesBench::network() {
  Cluster& c = rates_.cluster;
  const auto& places = session_.places();
  const auto other = std::find_if(places.begin(), places.end(), [&](const RankPlace& place) {
    return place.host != places.front().host;
  });
  const MessageRates pair = message_rates(connections(), 0, other->rank, part(0.1));
  // In a ring over all ranks, each node sends at the rate of the network.
  const double sums = sum_rate(connections(), part(0.15));
  const double best = std::max(pair.gb_per_s, sums);
  set("network.gb_per_s", c.network.gb_per_s, best, "bench p2p and coll: the better of both");
  if (on_gpu()) {
    set("network.latency_us", c.network.latency_us, hop_latency(connections(), part(0.05)),
        "bench coll: an all-reduce of 8 bytes over all ranks, per step");
  } else {
    set("network.latency_us", c.network.latency_us, pair.latency_us,
        "bench p2p: 8 bytes between two hosts");
  }
  set("efficiency.network", c.efficiency.network, sums / best,
      fmt::format("bench coll: an all-reduce of {} over all ranks",
                  format_bytes(sizes_.transfers.sum_bytes)));
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
  if (on_gpu()) {
    reserve_on_gpus();
  } else {
    // Transfers and computing share the cores, so what is hidden shows in the calibration's
    // factors.
    rates_.cluster.efficiency.overlap = 0;
    rates_.remarks["efficiency.overlap"] = "contained in calibration.replicas and .pipeline";
  }
  return rates_;
}

}  // namespace

MachineRates measure_machine(const Cluster& base, const MachineRatesOptions& options,
                             AppContext& context) {
  return RatesBench(base, options, context).run();
}

}  // namespace trireme
