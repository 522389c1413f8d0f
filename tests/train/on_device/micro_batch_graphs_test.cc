// Steps whose micro-batches are repeated as CUDA graphs have the bits of steps that compute each
// micro-batch anew, in every layout and whatever order the device's streams run in. Ranks are
// threads with a simulated device each.
#include "src/train/engine/micro_batch_graphs.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "mpi/nccl/nccl_world.h"
#include "src/base/fault.h"
#include "src/device/cuda_device.h"
#include "src/device/sim/machine.h"
#include "src/train/training_fault_sites.h"
#include "tests/train/layouts/tiny_runs.h"
#include "tests/train/on_device/device_choices.h"

namespace trireme {
namespace {

constexpr int kSteps = 4;

struct GraphCase {
  const char* name;
  Family family = Family::gpt2;
  const char* precision = "fp32";
  Degrees degrees = {};
  int zero = 0;
  const char* schedule = "1f1b";
  const char* recompute = "none";
  std::int64_t global_batch = 4;
  std::int64_t first_batch = 0;  // of a ramp; 0: none
  const char* attention = "own";
  double attention_dropout = 0;
};

RunConfig config_of(const GraphCase& each) {
  Choice choice{each.degrees, each.zero, each.schedule, each.recompute};
  ModelConfig model = model_of(each.family, each.schedule == std::string("interleaved") ? 4 : 2);
  model.tie_embeddings = each.schedule != std::string("zero_bubble");
  if (each.attention == std::string("cudnn")) {  // which needs heads of 8 or more
    model.heads = 2;
    model.kv_heads = 1;
    model.head_dim = 8;
  }
  model.attention_dropout = each.attention_dropout;
  RunConfig config = config_of(model, choice);
  config.train.global_batch = each.global_batch;
  config.train.precision = each.precision;
  config.train.loss_scale.growth_interval = 1;  // of fp16: another scale in each step
  config.train.attention = each.attention;
  config.train.steps = kSteps;
  config.optimizer.schedule.steps = kSteps;
  if (each.first_batch > 0) {
    config.train.batch_ramp = {.from = each.first_batch, .by = each.first_batch, .every = 2};
  }
  return config;
}

// What a rank has seen of the steps.
struct Seen {
  std::vector<std::uint64_t> bits;  // of the loss and the gradient's norm of each step
  cuda::DeviceUse last;             // what the last step has used
  StepMemory memory;
};

std::uint64_t bits_of(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

Seen run_steps(Communicator& threads, FlightRecorder& recorder, const RunConfig& config) {
  threads.set_deadline(std::chrono::seconds(120));
  const Device device{DeviceKind::cuda, threads.rank()};
  const auto data =
      make_nccl_world(threads.split(0, threads.rank(), "control"), {.device = device, .watch = {}});
  DeviceContext context(device, device_kernels(config), 1, data->memory());
  Engine engine(config, make_layout(config, threads.size(), threads.size()),
                {threads, *data, recorder, context});
  choose_algorithms(config, engine.layout(), threads.rank(), device.index);
  engine.initialize(1);
  HashedTokens tokens(engine);
  TrainStep step(engine, [&] { return tokens.next(); });
  TrainingCounters counters;
  Seen seen;
  cuda::DeviceUse before;
  for (int i = 0; i < kSteps; ++i) {
    threads.barrier().wait();
    before = cuda::device_use();
    const StepResult result = step.run(counters, 0);
    seen.bits.push_back(bits_of(result.loss));
    seen.bits.push_back(bits_of(result.grad_norm));
  }
  threads.barrier().wait();
  const cuda::DeviceUse after = cuda::device_use();
  seen.last = {after.waits - before.waits, after.allocations - before.allocations,
               after.graphs - before.graphs};
  seen.memory = taken_memory(engine);
  return seen;
}

// Returns what rank 0 has seen.
Seen run_on_devices(RunConfig config, const char* graphs, std::uint64_t seed) {
  config.train.graphs = graphs;
  const std::uint64_t earlier = sim::machine().seed();
  sim::machine().set_seed(seed);
  const auto ranks = static_cast<int>(config.parallel.dp.integer * config.parallel.tp.integer *
                                      config.parallel.pp.integer);
  std::vector<Seen> seen(static_cast<std::size_t>(ranks));
  ThreadWorld world(ranks);
  world.run([&](Communicator& threads) {
    seen[static_cast<std::size_t>(threads.rank())] =
        run_steps(threads, world.recorder(threads.rank()), config);
  });
  sim::machine().set_seed(earlier);
  return seen.front();
}

class MicroBatchGraphsTest : public testing::TestWithParam<GraphCase> {};

TEST_P(MicroBatchGraphsTest, HaveTheBitsOfStepsWithoutThem) {
  const RunConfig config = config_of(GetParam());
  const Seen expected = run_on_devices(config, "off", 0);
  EXPECT_EQ(expected.last.graphs, 0);
  if (config.train.attends_by_cudnn()) {
    EXPECT_TRUE(std::isfinite(std::bit_cast<double>(expected.bits.back())));
    RunConfig own = config;
    own.train.attention = "own";
    EXPECT_NE(run_on_devices(own, "off", 0).bits, expected.bits);
  }
  for (const std::uint64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    const Seen seen = run_on_devices(config, "on", seed);
    EXPECT_EQ(seen.bits, expected.bits);
    EXPECT_GT(seen.last.graphs, 0);
    EXPECT_EQ(seen.last.waits, 1);
    if (GetParam().degrees.pp == 1) {  // a stage keeps what it sends until that has left
      EXPECT_EQ(seen.last.allocations, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, MicroBatchGraphsTest,
    testing::Values(GraphCase{"dropout"},  // as every case with GPT-2
                    GraphCase{"one_micro_batch", Family::llama, "bf16", {}, 0, "1f1b", "none", 1},
                    GraphCase{"recompute", Family::gpt2, "bf16", {}, 0, "1f1b", "full"},
                    GraphCase{"batch_ramp", Family::llama, "fp32", {}, 0, "1f1b", "none", 4, 2},
                    GraphCase{"loss_scale", Family::llama, "fp16"},
                    GraphCase{"cudnn", Family::llama, "bf16", {}, 0, "1f1b", "none", 4, 0, "cudnn"},
                    GraphCase{"attention_dropout",
                              Family::llama,
                              "fp32",
                              {},
                              0,
                              "1f1b",
                              "none",
                              4,
                              0,
                              "own",
                              0.3},  // and no dropout elsewhere
                    GraphCase{"dp_zero1", Family::llama, "bf16", {2, 1, 1}, 1},
                    GraphCase{"dp_zero2", Family::gpt2, "fp32", {2, 1, 1}, 2},
                    GraphCase{"tp", Family::gpt2, "bf16", {1, 2, 1}},
                    GraphCase{"pp_tied", Family::gpt2, "fp32", {1, 1, 2}},
                    GraphCase{"interleaved", Family::llama, "bf16", {1, 1, 2}, 0, "interleaved"},
                    GraphCase{"zero_bubble", Family::gpt2, "fp32", {1, 1, 2}, 0, "zero_bubble"}),
    [](const auto& each) { return std::string(each.param.name); });

// The fault is in a gradient of the first step that repeats graphs, and only there.
TEST(MicroBatchGraphs, LetPlannedFaultsChangeGradients) {
  const RunConfig config = config_of(GraphCase{"fault"});
  const Seen whole = run_on_devices(config, "on", 0);
  std::vector<Seen> seen;
  for (const char* graphs : {"off", "on"}) {
    arm_faults(parse_fault_plan("step.gradient:0:10:scale=3", kTrainingFaultSites), 0, 1);
    seen.push_back(run_on_devices(config, graphs, 0));
    arm_faults({}, 0, 1);
  }
  EXPECT_EQ(seen[0].bits, seen[1].bits);
  EXPECT_NE(seen[1].bits, whole.bits);
}

TEST(MicroBatchGraphs, AreRefusedWhereTheyCannotBeRepeated) {
  RunConfig config = config_of(GraphCase{"refused", Family::gpt2, "fp32", {2, 1, 1}});
  const Device gpu{DeviceKind::cuda, 0};
  const auto why = [&] { return why_no_graphs(config, make_layout(config, 2, 2), gpu); };
  EXPECT_EQ(why(), "");
  EXPECT_NE(why_no_graphs(config, make_layout(config, 2, 2), Device::cpu()), "");
  config.data.documents = "separate";
  EXPECT_NE(why().find("data.documents"), std::string::npos);
  config.data.documents = "joined";
  config.parallel.zero = 3;
  EXPECT_NE(why().find("parallel.zero"), std::string::npos);
  config.parallel.zero = 2;
  config.divergence.digests = true;
  EXPECT_NE(why().find("divergence.digests"), std::string::npos);
  config.divergence.digests = false;
  config.train.graphs = "off";
  EXPECT_NE(why(), "");
  config = config_of(GraphCase{"refused", Family::gpt2, "fp32", {1, 1, 2}, 0, "zero_bubble"});
  EXPECT_EQ(why(), "");
  config.model.tie_embeddings = true;
  EXPECT_NE(why().find("tied embedding"), std::string::npos);
}

}  // namespace
}  // namespace trireme
