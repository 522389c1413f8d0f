// Tests that the predicted memory of a CUDA device equals what the pools of a rank report after
// steps on the simulated device, and that these steps compute no products but the predicted ones,
// because others throw. Ranks are threads with a device each.
#include <algorithm>

#include <gtest/gtest.h>

#include "mpi/nccl/nccl_world.h"
#include "mpi/thread/thread_world.h"
#include "src/device/cuda_device.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/memory_plan.h"
#include "tests/train/on_device/device_choices.h"

namespace trireme {
namespace {

struct DeviceCase {
  const char* name;
  int dp = 1;
  int tp = 1;
  int pp = 1;
  int zero = 0;
  const char* recompute = "none";
  const char* precision = "bf16";
  const char* products = "precision";
  const char* attention = "own";
  std::int64_t micro_batch = 2;
  std::int64_t sequence = 16;
  bool separates_documents = false;
};

RunConfig config_of(const DeviceCase& each) {
  RunConfig c;
  c.model.family = each.separates_documents ? Family::llama : Family::gpt2;
  c.model.layers = std::max(2, each.pp);
  c.model.hidden = 32;
  c.model.heads = 2;
  c.model.ffn = 4 * c.model.hidden;
  c.model.vocab = 101;
  c.model.context = each.sequence;
  c.model.complete();
  c.data.sequence = each.sequence;
  c.data.documents = each.separates_documents ? "separate" : "joined";
  c.train.steps = 2;
  c.train.global_batch = 2 * each.micro_batch;
  c.train.micro_batch = each.micro_batch;
  c.train.precision = each.precision;
  c.train.products = each.products;
  c.train.attention = each.attention;
  c.train.fp8_scaling = "delayed";
  c.train.recompute = each.recompute;
  c.optimizer.schedule.lr = c.optimizer.lr;
  c.optimizer.schedule.steps = 2;
  c.parallel.dp = {each.dp, ""};
  c.parallel.tp = {each.tp, ""};
  c.parallel.pp = {each.pp, ""};
  c.parallel.zero = each.zero;
  return c;
}

struct TakenOnDevice {
  StepMemory pools;
  std::int64_t all = 0;  // bytes of the device that are in use
};

// Returns what a rank has taken of its device after two steps.
TakenOnDevice measured(Communicator& threads, FlightRecorder& recorder, const RunConfig& config) {
  threads.set_deadline(std::chrono::seconds(120));
  const Device device{DeviceKind::cuda, threads.rank()};
  const auto data =
      make_nccl_world(threads.split(0, threads.rank(), "control"), {.device = device, .watch = {}});
  const std::int64_t free_before = cuda::device_facts(device.index).free_bytes;
  DeviceContext context(device, device_kernels(config), 1, data->memory());
  Engine engine(config, make_layout(config, threads.size(), threads.size()),
                {threads, *data, recorder, context});
  engine.initialize(1);
  choose_algorithms(config, engine.layout(), threads.rank(), device.index);
  const auto tokens = config.train.micro_batch * config.data.sequence;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(i % 101);
  }
  const ConstView view{ids.data(), tokens, DType::i32};
  DocumentRanges documents;
  if (config.data.separates_documents()) {
    documents = std::make_shared<const std::vector<DocumentRange>>(
        std::vector<DocumentRange>{{0, 0, 5}, {0, 5, 1}, {0, 6, 10}, {1, 0, 16}});
  }
  TrainStep step(engine, [&] {
    return LoadedMicroBatch{
        0, config.train.micro_batch, config.data.sequence, view, view, nullptr, documents};
  });
  TrainingCounters counters;
  for (int i = 0; i < 2; ++i) {
    (void)step.run(counters, 0);
  }
  threads.barrier().wait();
  return {taken_memory(engine), free_before - cuda::device_facts(device.index).free_bytes};
}

class DeviceMemory : public testing::TestWithParam<DeviceCase> {};

TEST_P(DeviceMemory, IsPredicted) {
  const RunConfig config = config_of(GetParam());
  const int ranks = GetParam().dp * GetParam().tp * GetParam().pp;
  const Layout layout = make_layout(config, ranks, ranks);
  std::vector<TakenOnDevice> taken(static_cast<std::size_t>(ranks));
  ThreadWorld world(ranks);
  world.run([&](Communicator& threads) {
    taken[static_cast<std::size_t>(threads.rank())] =
        measured(threads, world.recorder(threads.rank()), config);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(rank);
    const StepMemory predicted = step_memory(config, layout, rank, kCountsCuda);
    const auto& [pools, all] = taken[static_cast<std::size_t>(rank)];
    EXPECT_EQ(predicted.working_copies, pools.working_copies);
    EXPECT_EQ(predicted.masters, pools.masters);
    EXPECT_EQ(predicted.states, pools.states);
    EXPECT_EQ(predicted.gathered, pools.gathered);
    EXPECT_GE(predicted.gradients, pools.gradients);
    if (ranks == 1) {
      EXPECT_EQ(predicted.gradients, pools.gradients);
    }
    EXPECT_EQ(predicted.peak_activations, pools.peak_activations);
    EXPECT_EQ(predicted.activations, pools.activations);
    EXPECT_EQ(predicted.peak_exchanged, pools.peak_exchanged);
    EXPECT_EQ(predicted.exchanged, pools.exchanged);
    EXPECT_EQ(predicted.scratch > 0, ranks > 1);
    EXPECT_LE(all, plan_memory(config, layout, rank, 0, MemoryPlace::device).total());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DeviceMemory,
    testing::Values(
        DeviceCase{"one"}, DeviceCase{"recomputed", 1, 1, 1, 0, "full"}, DeviceCase{"dp", 2},
        DeviceCase{"tp", 1, 2}, DeviceCase{"pp", 1, 1, 2}, DeviceCase{"zero", 2, 1, 1, 3},
        DeviceCase{"fp16", 2, 1, 1, 1, "none", "fp16"},
        DeviceCase{"fp8", 2, 1, 1, 1, "none", "bf16", "fp8"},
        DeviceCase{"cudnn", 2, 1, 1, 1, "full", "bf16", "precision", "cudnn"},
        DeviceCase{"cudnn_fp16_tp", 1, 2, 1, 0, "none", "fp16", "precision", "cudnn"},
        // Its workspace, by padded sequences, exceeds that of products.
        DeviceCase{"cudnn_grows", 1, 1, 1, 0, "none", "bf16", "precision", "cudnn", 1056, 2},
        // The stage in the middle holds no tokens.
        DeviceCase{"documents", 1, 1, 3, 0, "none", "bf16", "precision", "own", 2, 16, true},
        DeviceCase{"documents_recomputed", 1, 2, 1, 0, "full", "bf16", "precision", "own", 2, 16,
                   true}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trireme
