#include "benchmarks/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "benchmarks/gemm/product.h"
#include "benchmarks/progress.h"
#include "benchmarks/statistics.h"
#include "benchmarks/table_time.h"
#include "benchmarks/turns.h"
#include "src/base/error.h"
#include "src/base/median.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/compute/device_context.h"
#include "src/compute/kernel_choice.h"
#include "src/device/cuda_device.h"
#include "src/train/memory/available_memory.h"
#include "src/train/run/model_presets.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmup = 2;
constexpr StopRule kUntilKnown{.least = 6, .most = 1000, .seconds = 2, .precision = 0.05};
constexpr double kWarmupPart = 0.25;  // of the time of a product, with --duration
constexpr double kMostOfMemory = 0.7;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // null in JSON

struct Measured {
  ProductShape shape;
  std::string precision;
  TurnSamples samples = {};
  HowMeasured how = {};
  std::int64_t wrong = 0;
  double baseline = kNone;
  double fraction = kNone;  // of the baseline
};

class GemmBench {
 public:
  GemmBench(const BenchGemmOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        threads_(
            compute_threads(options.threads > 0 ? options.threads : session.place().threads())) {
    for (const std::int64_t size : options.sizes) {
      shapes_.push_back(square_shape(size));
    }
    if (!options.model.empty()) {
      const auto model = model_shapes(preset_model_config(options.model), options.tokens);
      shapes_.insert(shapes_.end(), model.begin(), model.end());
    }
    shapes_.insert(shapes_.end(), options.shapes.begin(), options.shapes.end());
    check_memory();
  }

  BenchGemmResult run() {
    BenchGemmResult result{Json::array(), 0, std::nullopt};
    const Stopwatch watch;
    std::int64_t left = parts();
    progress_.emplace("bench gemm", parts(), world().rank() == 0);
    print_head();
    for (const std::string& precision : options_.precisions) {
      for (const ProductShape& shape : shapes_) {
        const double elapsed = all_reduce_value(world(), watch.seconds(), ReduceOp::max);
        measure(shape, precision, table_seconds(options_.duration, elapsed, left--), result);
      }
    }
    return result;
  }

 private:
  Communicator& world() const { return session_.world(); }
  std::int64_t parts() const {
    return static_cast<std::int64_t>(shapes_.size() * options_.precisions.size());
  }
  static DType dtype_of_precision(const std::string& precision) {
    return precision == "fp32" ? DType::f32 : precision == "fp16" ? DType::f16 : DType::bf16;
  }
  static Fp8Format format_of_precision(const std::string& precision) {
    return precision == "fp8" ? Fp8Format::e4m3 : Fp8Format::none;
  }
  bool on_gpu() const { return options_.device.kind == DeviceKind::cuda; }
  std::string_view kernels_name() const { return kernels_for(options_.device).name; }

  void check_memory() const;

  // seconds: for one product, its warm-up included; 0 until its rate is known. However few they
  // are, one sample is taken: all nodes then have the same rows.
  static TurnOptions turns(double seconds) {
    TurnOptions turns;
    turns.warmup = kWarmup;
    turns.until_all_end = true;
    turns.sample_seconds = 5e-3;
    turns.stop = kUntilKnown;
    if (seconds > 0) {
      turns.warmup_seconds = kWarmupPart * seconds;
      turns.stop = StopRule::count_or_duration(0, (1 - kWarmupPart) * seconds);
      turns.stop->least = 1;
    }
    return turns;
  }

  void print_head() {
    progress_->print(fmt::format("# Trireme gemm: {} of {} at once, kernels {}\n",
                                 counted(world().size(), "rank"), counted(threads_, "thread"),
                                 kernels_name()));
    progress_->print("# Rates count 2 M N K operations per product; time until all ranks end\n");
    progress_->print(fmt::format("# {:<4} {:<13} {:<15} {:>6} {:>6} {:>6} {:>8} {:>7} {:>5}\n",
                                 "type", "layer", "pass", "M", "N", "K", "GFLOP/s", "base",
                                 "wrong"));
  }

  // seconds: for this product; 0 until its rate is known.
  void measure(const ProductShape& shape, const std::string& precision, double seconds,
               BenchGemmResult& result);
  Json entry(const Measured& m) const;
  // Returns the rate of the node's baseline, of all its cores, in FLOP/s, or kNone.
  double baseline(const std::string& precision) const;
  // Returns the rate of the ranks on rank 0's host, which the baseline is about.
  double rate_of_first_host(const ProductShape& shape, const TurnSamples& samples) const;

  BenchGemmOptions options_;
  MpiSession& session_;
  int threads_;
  std::vector<ProductShape> shapes_;
  std::optional<TableProgress> progress_;
};

// Products of one rank follow each other, and all ranks of a host use its memory; each has a GPU
// of its own.
void GemmBench::check_memory() const {
  std::int64_t most = 0;
  for (const ProductShape& shape : shapes_) {
    for (const std::string& precision : options_.precisions) {
      most = std::max(most, shape.bytes(dtype_of_precision(precision)));
    }
  }
  const std::int64_t wanted = most * (on_gpu() ? 1 : session_.place().local_size);
  const std::int64_t free =
      on_gpu() ? cuda::device_facts(options_.device.index).free_bytes : available_memory().bytes;
  if (static_cast<double>(wanted) > kMostOfMemory * static_cast<double>(free)) {
    throw ConfigError(fmt::format(
        "the largest product takes {} on this {}, and {} are free: take smaller sizes{}",
        format_bytes(wanted), on_gpu() ? "GPU" : "host", format_bytes(free),
        on_gpu() ? " or fewer --tokens" : ", fewer --tokens or fewer ranks"));
  }
}

double GemmBench::baseline(const std::string& precision) const {
  if (!options_.baseline) {
    return kNone;
  }
  double sum = 0;
  const int ranks = session_.places().front().local_size;
  for (const std::string& name : baseline_rates(precision, options_.device, ranks)) {
    const auto rate = options_.baseline->rates.find(name);
    if (rate == options_.baseline->rates.end()) {
      return kNone;
    }
    sum += 1e9 * rate->second.median;
  }
  return sum;
}

double GemmBench::rate_of_first_host(const ProductShape& shape, const TurnSamples& samples) const {
  const auto& places = session_.places();
  double rate = 0;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].host == places.front().host) {
      rate += shape.flops() / median(samples.by_rank[rank]);
    }
  }
  return rate;
}

Json GemmBench::entry(const Measured& m) const {
  std::vector<double> medians;
  for (const auto& times : m.samples.by_rank) {
    medians.push_back(median(times));
  }
  const auto slowest_rank = std::max_element(medians.begin(), medians.end());
  const auto fastest_rank = std::min_element(medians.begin(), medians.end());
  const MedianInterval time = median_interval(m.samples.seconds);
  const bool square = m.shape.pass.empty();
  const Json params = {{"layer", m.shape.name},
                       {"pass", square ? Json(nullptr) : Json(m.shape.pass)},
                       {"model", square ? Json(nullptr) : Json(options_.model)},
                       {"m", m.shape.m},
                       {"n", m.shape.n},
                       {"k", m.shape.k},
                       {"transpose_a", m.shape.transpose_a},
                       {"transpose_b", m.shape.transpose_b},
                       {"precision", m.precision},
                       {"result_precision", m.shape.pass == "weight_gradient" ? "fp32"
                                            : m.precision == "fp8"            ? "bf16"
                                                                              : m.precision},
                       {"ranks", world().size()},
                       {"threads", threads_},
                       {"kernels", kernels_name()},
                       {"aggregated", m.samples.aggregated}};
  const Json metrics = {{"time_us", 1e6 * time.median},
                        {"time_us_low", 1e6 * time.low},
                        {"time_us_high", 1e6 * time.high},
                        {"flop_convention", "2 M N K"},
                        {"flops_per_s", world().size() * m.shape.flops() / time.median},
                        {"slowest_rank", slowest_rank - medians.begin()},
                        {"slowest_rank_flops_per_s", m.shape.flops() / *slowest_rank},
                        {"fastest_rank_flops_per_s", m.shape.flops() / *fastest_rank},
                        {"baseline_flops_per_s", m.baseline},
                        {"fraction_of_baseline", m.fraction},
                        {"wrong", m.wrong}};
  return {{"name", "gemm"},
          {"params", params},
          {"metrics", metrics},
          {"measurement", to_json(m.how)},
          {"samples",
           {{"time_us", samples_json(multiplied(m.samples.seconds, 1e6),
                                     multiplied(m.samples.by_rank, 1e6))}}}};
}

void GemmBench::measure(const ProductShape& shape, const std::string& precision, double seconds,
                        BenchGemmResult& result) {
  progress_->measuring(fmt::format("{}, {} {}", precision, shape.name, shape.pass));
  DeviceContext context(options_.device, threads_);
  Product product(context, shape, dtype_of_precision(precision), format_of_precision(precision));
  product.run();
  Measured m{.shape = shape, .precision = precision};
  m.wrong = all_reduce_value(world(), product.wrong(), ReduceOp::sum);
  TurnOptions settling = turns(seconds);
  settling.settle = [&] { context.stream().synchronize(); };
  m.samples = take_turns(world(), {[&] { product.run(); }}, settling).front();
  m.how = how_turns_measure(settling);
  m.how.warmup = m.samples.warmup;
  m.baseline = baseline(precision);
  m.fraction = rate_of_first_host(shape, m.samples) / m.baseline;
  const bool compared = !std::isnan(m.fraction);
  progress_->print(fmt::format("  {:<4} {:<13} {:<15} {:>6} {:>6} {:>6} {:>8.1f} {:>7} {:>5}\n",
                               precision, shape.name, shape.pass.empty() ? "-" : shape.pass,
                               shape.m, shape.n, shape.k,
                               world().size() * shape.flops() / median(m.samples.seconds) / 1e9,
                               compared ? fmt::format("{:.2f}", m.fraction) : "-", m.wrong));
  result.wrong += m.wrong;
  if (compared) {
    result.least_fraction = std::min(result.least_fraction.value_or(m.fraction), m.fraction);
  }
  add_row(result.results, entry(m), options_.rows);
  progress_->done();
}

}  // namespace

std::vector<std::string> baseline_rates(const std::string& precision, Device device, int ranks) {
  if (device.kind != DeviceKind::cuda) {
    return {"products " + precision};
  }
  std::vector<std::string> names;
  for (int index = 0; index < ranks; ++index) {
    names.push_back(fmt::format("GPU {} products {}", index, precision));
  }
  return names;
}

BenchGemmResult bench_gemm(const BenchGemmOptions& options, MpiSession& session) {
  return GemmBench(options, session).run();
}

}  // namespace trireme
