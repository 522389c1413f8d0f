// Tests that the predicted memory of a rank equals what its pools and counters report after steps,
// for families, recomputation, tensor and pipeline parallelism, ZeRO and schedules. Ranks are
// threads.
#include "src/train/memory/memory_plan.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/step_memory.h"

namespace trireme {
namespace {

struct Choice {
  Family family = Family::gpt2;
  int dp = 1;
  int tp = 1;
  int pp = 1;
  int zero = 0;
  std::string schedule = "1f1b";
  std::string recompute = "none";
  std::string precision = "fp32";
  std::string sequence = "auto";
  std::string optimizer = "adamw";
  float ema = 0;
  BatchRamp ramp = {};
  std::int64_t global_batch = 16;
  bool jais = false;  // ALiBi, SwiGLU and scales

  std::string text() const {
    return fmt::format(
        "{}{} dp {} tp {} pp {} zero {} {} recompute {} {} sequence {} {} ema {} ramp from {} to "
        "{}",
        family_name(family), jais ? " like Jais" : "", dp, tp, pp, zero, schedule, recompute,
        precision, sequence, optimizer, ema, ramp.from, global_batch);
  }
};

RunConfig config_of(const Choice& choice) {
  RunConfig c;
  c.model.family = choice.family;
  c.model.layers = 4;
  c.model.hidden = 48;
  c.model.heads = 4;
  c.model.kv_heads = choice.family == Family::gpt2 ? 4 : 2;
  c.model.ffn = 104;
  c.model.vocab = 301;
  c.model.context = 24;
  c.model.dropout = choice.family == Family::gpt2 ? 0.1 : 0;
  if (choice.jais) {
    c.model.alibi = c.model.swiglu = true;
    c.model.embedding_scale = c.model.logit_scale = 2;
  }
  c.model.complete();
  c.data.sequence = 24;
  c.train.steps = 3;
  c.train.global_batch = choice.global_batch;
  c.train.micro_batch = 2;
  c.train.batch_ramp = choice.ramp;
  c.train.precision = choice.precision;
  c.train.recompute = choice.recompute;
  c.optimizer.name = choice.optimizer;
  c.optimizer.ema = choice.ema;
  c.optimizer.schedule.lr = c.optimizer.lr;
  c.optimizer.schedule.steps = 3;
  c.parallel.dp = {choice.dp, ""};
  c.parallel.tp = {choice.tp, ""};
  c.parallel.pp = {choice.pp, ""};
  c.parallel.zero = choice.zero;
  c.parallel.sequence = choice.sequence;
  c.parallel.schedule = choice.schedule;
  c.parallel.virtual_stages = choice.schedule == "interleaved" ? 2 : 1;
  c.parallel.bucket_bytes = 40000;  // several buckets
  return c;
}

// Returns what a rank has taken after two steps, or after one step of each stage of the ramp.
StepMemory measured(Communicator& world, FlightRecorder& recorder, const RunConfig& config) {
  world.set_deadline(std::chrono::seconds(120));
  DeviceContext context(Device::cpu(), 1, world.memory());
  Engine engine(config, make_layout(config, world.size(), world.size()),
                {world, world, recorder, context});
  engine.initialize(1);
  const auto tokens = config.train.micro_batch * config.data.sequence;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
  std::iota(ids.begin(), ids.end(), 0);
  const ConstView view{ids.data(), tokens, DType::i32};
  const TokenSource source = [&] {
    return LoadedMicroBatch{0, config.train.micro_batch, config.data.sequence, view, view};
  };
  TrainStep step(engine, source);
  TrainingCounters counters;
  const std::int64_t steps = std::max<std::int64_t>(2, config.batches().stages());
  for (std::int64_t i = 0; i < steps; ++i) {
    (void)step.run(counters, 0);
  }
  const StepMemory taken = taken_memory(engine);
  // The account covers what the pools keep; they round sizes up by at most an eighth.
  const std::int64_t accounted =
      taken.working_copies + taken.masters + taken.states + taken.gradients + taken.gathered;
  EXPECT_GE(accounted + accounted / 8 + 4096,
            context.state().reserved_bytes() + context.exchange_state().reserved_bytes());
  return taken;
}

// Compares prediction and measurement of all ranks.
void expect_predicted(const Choice& choice) {
  SCOPED_TRACE(choice.text());
  const RunConfig config = config_of(choice);
  const int ranks = choice.dp * choice.tp * choice.pp;
  const Layout layout = make_layout(config, ranks, ranks);
  std::vector<StepMemory> taken(static_cast<std::size_t>(ranks));
  ThreadWorld world(ranks);
  world.run([&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    taken[rank] = measured(comm, world.recorder(comm.rank()), config);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(rank);
    const StepMemory predicted = step_memory(config, layout, rank);
    const StepMemory& real = taken[static_cast<std::size_t>(rank)];
    EXPECT_EQ(predicted.working_copies, real.working_copies);
    EXPECT_EQ(predicted.masters, real.masters);
    EXPECT_EQ(predicted.states, real.states);
    EXPECT_EQ(predicted.gathered, real.gathered);
    EXPECT_LE(std::abs(predicted.snapshot - real.snapshot), 12 * 4);
    // From ZeRO 1 on, the number of buckets that are under way at one time depends on speed.
    if (choice.zero == 0 || choice.dp == 1) {
      EXPECT_EQ(predicted.gradients, real.gradients);
    } else {
      EXPECT_GE(predicted.gradients, real.gradients);
    }
    // How long a message waits for its receiver depends on speed, too.
    if (choice.pp == 1) {
      EXPECT_EQ(predicted.peak_activations, real.peak_activations);
      EXPECT_EQ(predicted.activations, real.activations);
      EXPECT_EQ(predicted.peak_exchanged, real.peak_exchanged);
      EXPECT_EQ(predicted.exchanged, real.exchanged);
    } else {
      const auto stream = config.train.micro_batch * config.data.sequence * config.model.hidden * 4;
      const std::int64_t late = stream * layout.shape.micro_batches * 2;
      EXPECT_LE(predicted.peak_activations, real.peak_activations);
      EXPECT_LE(real.peak_activations - predicted.peak_activations, late);
      EXPECT_LE(std::abs(real.peak_exchanged - predicted.peak_exchanged), late);
    }
  }
}

TEST(StepMemory, OfOneRank) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* precision : {"fp32", "bf16"}) {
        expect_predicted({.family = family, .recompute = recompute, .precision = precision});
      }
    }
  }
}

TEST(StepMemory, OfAModelLikeJais) {
  for (const char* recompute : {"none", "selective", "full"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      expect_predicted({.recompute = recompute, .precision = precision, .jais = true});
      expect_predicted({.tp = 2, .recompute = recompute, .precision = precision, .jais = true});
    }
  }
  expect_predicted({.dp = 2, .pp = 2, .zero = 3, .jais = true});
}

TEST(StepMemory, OfEveryOptimizer) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const char* optimizer : {"adamw", "sgd", "muon"}) {
      for (const float ema : {0.0F, 0.9F}) {
        expect_predicted({.family = family, .optimizer = optimizer, .ema = ema});
        expect_predicted({.family = family, .pp = 2, .optimizer = optimizer, .ema = ema});
      }
    }
  }
  for (const int zero : {1, 2, 3}) {
    expect_predicted({.dp = 2, .zero = zero, .optimizer = "sgd", .ema = 0.9F});
  }
}

TEST(StepMemory, OfTensorParallelRanks) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* sequence : {"auto", "off"}) {
        expect_predicted({.family = family, .tp = 2, .recompute = recompute, .sequence = sequence});
      }
    }
  }
  // Two ranks hold the same key-value heads.
  expect_predicted({.family = Family::llama, .tp = 4});
}

TEST(StepMemory, OfEveryLevelOfZero) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const int zero : {0, 1, 2, 3}) {
      expect_predicted({.family = family, .dp = 2, .zero = zero, .precision = "bf16"});
      expect_predicted({.family = family, .dp = 2, .tp = 2, .zero = zero});
    }
  }
}

TEST(StepMemory, OfEverySchedule) {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble"}) {
      expect_predicted({.family = family, .pp = 2, .schedule = schedule});
      expect_predicted({.family = family, .tp = 2, .pp = 2, .schedule = schedule});
      expect_predicted({.family = family,
                        .dp = 2,
                        .pp = 2,
                        .zero = 3,
                        .schedule = schedule,
                        .recompute = "full"});
    }
  }
}

// From ZeRO 2 on, a step of 6 micro-batches on 2 ranks needs more memory than one of 8: its rounds
// are longer, and a rank keeps whole gradients.
TEST(StepMemory, OfABatchRamp) {
  const BatchRamp ramp{4, 4, 1};  // 2, 4, 6 and 8 micro-batches
  for (const int zero : {0, 1, 2, 3}) {
    expect_predicted({.dp = 2, .zero = zero, .ramp = ramp});
    // One stage keeps most whole gradients, and another one most shards.
    expect_predicted({.dp = 2, .zero = zero, .ramp = ramp, .global_batch = 20});
    expect_predicted({.dp = 2, .zero = zero, .ramp = ramp, .global_batch = 12});
  }
  expect_predicted({.ramp = ramp});
  expect_predicted({.pp = 2, .schedule = "interleaved", .ramp = ramp});
  const auto gradients = [](const BatchRamp& which) {
    const RunConfig config = config_of({.dp = 2, .zero = 2, .ramp = which});
    return step_memory(config, make_layout(config, 2, 2), 0).gradients;
  };
  EXPECT_GT(gradients(ramp), gradients({}));
  EXPECT_EQ(gradients({8, 8, 1}), gradients({}));
}

// The node's memory holds two whole steps and the one being saved; with partners, also two of
// another node.
TEST(MemoryPlan, CountsTheCopiesInMemory) {
  RunConfig config = config_of({});
  const Layout layout = make_layout(config, 1, 1);
  const std::int64_t once = step_memory(config, layout, 0).snapshot;
  EXPECT_EQ(plan_memory(config, layout, 0, 0).snapshot, once);
  config.checkpoint.memory_every = {0, "auto"};
  EXPECT_EQ(plan_memory(config, layout, 0, 0).snapshot, 5 * once);
  config.checkpoint.memory_every = {7, ""};
  config.checkpoint.partner = false;
  EXPECT_EQ(plan_memory(config, layout, 0, 0).snapshot, 3 * once);
}

}  // namespace
}  // namespace trireme
