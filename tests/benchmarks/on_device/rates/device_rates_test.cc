// Every rank runs every test. Nothing is asserted before an operation of all ranks, because the
// others would wait for it.
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "benchmarks/calibrate/machine_rates.h"
#include "benchmarks/calibrate/short_trains.h"
#include "benchmarks/coll/coll.h"
#include "benchmarks/gemm/gemm.h"
#include "benchmarks/gemm/product.h"
#include "benchmarks/mem/device_memory.h"
#include "benchmarks/p2p/p2p.h"
#include "io/data/packer.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

AppContext* app = nullptr;

// The device of this rank, as measured_device() gives it.
Device own_device() { return {DeviceKind::cuda, app->session().world().rank()}; }

TEST(ProductOnADevice, IsExactInEveryLayoutAndType) {
  DeviceContext context(own_device(), 1);
  struct Case {
    DType dtype;
    Fp8Format format;
  };
  for (const Case& each : {Case{DType::f32, Fp8Format::none}, Case{DType::bf16, Fp8Format::none},
                           Case{DType::f16, Fp8Format::none}, Case{DType::bf16, Fp8Format::e4m3}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const char* pass : {"forward", "weight_gradient"}) {
          Product product(context, {"x", pass, 48, 32, 64, transpose_a, transpose_b}, each.dtype,
                          each.format);
          EXPECT_EQ(product.wrong(), Product::kVerified) << "nothing is computed yet";
          product.run();
          EXPECT_EQ(product.wrong(), 0)
              << static_cast<int>(each.dtype) << transpose_a << transpose_b << pass;
        }
      }
    }
  }
}

TEST(DeviceMemory, MeasuresCopiesAndSums) {
  DeviceContext context(own_device(), 1);
  const BenchMemResult result = bench_device_memory(context, {.bytes = 1 << 20, .duration = 0.05});
  EXPECT_EQ(result.wrong, 0);
  std::set<std::string> kernels;
  for (const auto& entry : result.results) {
    EXPECT_EQ(entry.at("name"), "mem_device");
    EXPECT_EQ(entry.at("params").at("array_bytes"), 1 << 20);
    EXPECT_GT(entry.at("metrics").at("bytes_per_s"), 0);
    kernels.insert(entry.at("params").at("kernel"));
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"add", "copy"}));
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1} << 40}) {
    EXPECT_THAT(
        message_of<ConfigError>([&] { (void)bench_device_memory(context, {.bytes = bytes}); }),
        HasSubstr("2 arrays"));
  }
}

TEST(DeviceGemm, MeasuresThePrecisionsOfGpus) {
  BenchGemmOptions options;
  options.device = own_device();
  options.sizes = {64};
  options.precisions = {"bf16", "fp32", "fp16", "fp8"};
  options.duration = 0.2;
  const BenchGemmResult result = bench_gemm(options, app->session());
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(result.results.size(), options.precisions.size());
  options.sizes = {1 << 15};
  EXPECT_THAT(message_of<ConfigError>([&] { (void)bench_gemm(options, app->session()); }),
              HasSubstr("on this GPU"));
}

TEST(DeviceGemm, ComparesWithTheBaselineOfTheGpus) {
  EXPECT_EQ(baseline_rates("bf16", Device::cpu(), 2), std::vector<std::string>{"products bf16"});
  EXPECT_EQ(baseline_rates("bf16", own_device(), 2),
            (std::vector<std::string>{"GPU 0 products bf16", "GPU 1 products bf16"}));
}

TEST(DeviceGroup, EveryOperationArrivesIntact) {
  if (app->session().world().size() < 2) {
    GTEST_SKIP() << "operations need two ranks";
  }
  BenchCollOptions options;
  options.device = own_device();
  options.ops = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                 Collective::broadcast,  Collective::all_to_all,     Collective::barrier};
  options.min_bytes = 8;
  options.max_bytes = 1 << 16;
  options.factor = 1 << 13;
  options.turns.warmup = options.turns.iterations = options.turns.aggregated = 1;
  const BenchCollResult result = bench_coll(options, app->session());
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(result.results.size(), 11);  // two sizes, and a barrier without one
  EXPECT_EQ(result.results.at(0).at("params").at("backend"), "nccl");
  EXPECT_FALSE(result.results.at(1).at("metrics").contains("memory_bytes_per_s"));
  options.sum_order = SumOrder::any;
  options.ops = {Collective::all_reduce};
  EXPECT_EQ(bench_coll(options, app->session()).wrong, 0);
  options.peer_mpi = true;
  EXPECT_THAT(message_of<ConfigError>([&] { (void)bench_coll(options, app->session()); }),
              HasSubstr("--peer"));
}

// Each simulated GPU has 256 MiB, which hold no two arrays of 512 MiB.
TEST(DeviceGroup, SizesThatAGpuCannotHoldAreLeftOut) {
  if (app->session().world().size() < 2) {
    GTEST_SKIP() << "operations need two ranks";
  }
  BenchCollOptions options;
  options.device = own_device();
  options.min_bytes = std::int64_t{1} << 20;
  options.max_bytes = std::int64_t{512} << 20;
  options.factor = 512;
  options.turns.warmup = options.turns.iterations = options.turns.aggregated = 1;
  options.ops = {Collective::all_reduce, Collective::broadcast};
  const BenchCollResult result = bench_coll(options, app->session());
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(result.results.size(), 2);
  EXPECT_THAT(result.left_out, testing::ElementsAre("all_reduce, 512 MiB", "broadcast, 512 MiB"));
}

TEST(DeviceGroup, MessagesArriveIntact) {
  if (app->session().world().size() < 2) {
    GTEST_SKIP() << "messages need two ranks";
  }
  BenchP2pOptions options;
  options.device = own_device();
  options.min_bytes = 256;
  options.max_bytes = 1024;
  options.iterations = 1;
  options.warmup = 1;
  options.window = 4;
  const BenchP2pResult result = bench_p2p(options, app->session());
  EXPECT_EQ(result.wrong, 0);
  EXPECT_EQ(result.results.size(), 6);
}

// The folder is the same on all ranks.
class Calibration : public testing::Test {
 protected:
  Calibration() {
    Communicator& world = app->session().world();
    if (world.rank() == 0) {
      own_.emplace();
    }
    folder_ = broadcast_text(world, own_ ? own_->path().string() : "", 0);
  }
  ~Calibration() override { app->session().world().barrier().wait(); }

  // Writes text, packs it, and writes the configuration of a model of two small blocks.
  fs::path make_run() const {
    const fs::path file = folder_ / "run.yaml";
    run_on_root(app->session().world(), [&] {
      fs::create_directories(folder_ / "text");
      std::ofstream(folder_ / "text/a.txt") << std::string(8000, 'a') << std::string(8000, 'b');
      PackOptions pack_options;
      pack_options.inputs = {(folder_ / "text").string()};
      pack_options.out = folder_ / "data";
      (void)pack(pack_options, {});
      std::ofstream(file) << "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, "
                             "context: 32}\n"
                             "data: {train: "
                          << (folder_ / "data").string()
                          << ", sequence: 16}\n"
                             "train: {steps: 9, global_batch: 4, micro_batch: 1, device: cuda, "
                             "precision: bf16, threads: 1}\n"
                             "numerics: {self_check: false}\n"
                             "optimizer: {lr: 1e-3}\n"
                             "run: {dir: "
                          << (folder_ / "run").string() << "}\n";
      return std::string();
    });
    return file;
  }

  std::optional<TempFolder> own_;  // on rank 0
  fs::path folder_;
};

TEST_F(Calibration, DescribesTheGpus) {
  Cluster base;
  base.name = "base";
  base.node.price_per_hour = 3;
  MachineRatesOptions options;
  options.device = "cuda";
  options.on_gpu = {64, 1 << 20, {.sum_bytes = 1 << 16, .message_bytes = 1 << 10, .window = 2}};
  options.fp8 = true;
  options.shapes = {{"qkv", "forward", 32, 48, 16, false, false}};
  options.folder = folder_;
  options.seconds = 0.5;
  const MachineRates rates = measure_machine(base, options, *app);
  const Cluster& c = rates.cluster;
  const int ranks = app->session().world().size();
  EXPECT_EQ(c.device.kind, "gpu");
  EXPECT_EQ(c.device.type, "simulated device");
  EXPECT_EQ(c.device.per_node, ranks);
  EXPECT_EQ(c.nodes, 1);
  EXPECT_EQ(c.device.memory, 256 << 20);
  EXPECT_LT(c.device.reserved_memory, c.device.memory);
  EXPECT_GT(c.device.compute_units, 0);
  for (const double measured :
       {c.device.bf16_tflops, c.device.fp8_tflops, c.device.fp32_tflops, c.device.memory_gb_per_s,
        c.device.launch_us, c.efficiency.fp8_products, c.storage.write_gb_per_s}) {
    EXPECT_GT(measured, 0);
  }
  EXPECT_EQ(c.links.latency_us != base.links.latency_us, ranks > 1);
  EXPECT_EQ(rates.remarks.contains("links.gb_per_s"), ranks > 1);
  EXPECT_EQ(c.efficiency.overlap, base.efficiency.overlap) << "a GPU copies while it computes";
  EXPECT_EQ(c.node.price_per_hour, 3);
  EXPECT_THAT(rates.remarks.at("device.memory_gb_per_s"), HasSubstr("bench mem"));
}

TEST_F(Calibration, TrainsOnTheGpus) {
  if (app->session().world().size() > 1) {
    GTEST_SKIP() << "e2e.simulated_gpu trains on several GPUs";
  }
  ShortTrainsOptions options;
  options.configs = {make_run()};
  options.folder = folder_;
  options.steps = 2;
  options.rounds = 1;
  const std::vector<MeasuredStep> steps = short_trains(options, *app);
  EXPECT_EQ(steps.size(), 2) << "as it is, and with half of the layers";
  for (const MeasuredStep& step : steps) {
    EXPECT_GT(step.measured.compute, 0);
    EXPECT_GT(step.memory_bytes, 0);
  }
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  trireme::AppContext context;
  trireme::app = &context;
  return RUN_ALL_TESTS();
}
