// Tokens are copied once between the loader's slots and a device: straight from pinned memory,
// which nobody overwrites before, in whatever order the device's streams run.
#include <bit>

#include <gtest/gtest.h>

#include "io/data/loader.h"
#include "mpi/nccl/nccl_world.h"
#include "src/device/cuda_device.h"
#include "src/device/sim/machine.h"
#include "tests/io/data/data_fixture.h"
#include "tests/train/layouts/tiny_runs.h"
#include "tests/train/on_device/device_choices.h"

namespace trireme {
namespace {

constexpr std::int64_t kMicrosPerStep = 4;  // per step
constexpr std::int64_t kTrainSteps = 3;

// PinnedTokensTest trains and evaluates a tiny model on packed text, on one simulated device.
class PinnedTokensTest : public DataTest {
 protected:
  void SetUp() override {
    DataTest::SetUp();
    write_random_text("in/a.txt", 4000, 1);
    pack(options("in", "data"), {});
    dataset_.emplace(Dataset::open(folder_ / "data"));
    seed_ = sim::machine().seed();
  }
  void TearDown() override { sim::machine().set_seed(seed_); }

  static RunConfig config() {
    ModelConfig model = model_of(Family::llama, 2);
    model.vocab = 300;
    RunConfig config = config_of(model, {});
    config.train.global_batch = kMicrosPerStep;
    config.train.graphs = "off";
    return config;
  }

  // Result holds the bits of all losses, and the copies over memory that is not pinned.
  struct Result {
    std::vector<std::uint64_t> losses;
    std::int64_t staged = 0;
  };

  // Calls compute(engine, pool) on a device whose work is shuffled by `seed`. The pool is pinned
  // memory, or null.
  template <class Compute>
  Result on_device(bool pinned, std::uint64_t seed, Compute compute) {
    sim::machine().set_seed(seed);
    const RunConfig own = config();
    Result result;
    ThreadWorld world(1);
    world.run([&](Communicator& comm) {
      const Device device{DeviceKind::cuda, 0};
      const auto data =
          make_nccl_world(comm.split(0, 0, "control"), {.device = device, .watch = {}});
      DeviceContext context(device, device_kernels(own), 1, data->memory());
      Engine engine(own, make_layout(own, 1, 1), {comm, *data, world.recorder(0), context});
      choose_algorithms(own, engine.layout(), 0, device.index);
      engine.initialize(1);
      context.stream().synchronize();
      const std::int64_t before = cuda::device_use().staged;
      for (const double loss : compute(engine, pinned ? &context.staging() : nullptr)) {
        result.losses.push_back(std::bit_cast<std::uint64_t>(loss));
      }
      result.staged = cuda::device_use().staged - before;
    });
    return result;
  }

  Result train(bool pinned, std::uint64_t seed) {
    return on_device(pinned, seed, [&](Engine& engine, Pool* memory) {
      const std::int64_t sequence = engine.config().data.sequence;
      Loader loader(*dataset_, {dataset_->samples(sequence), 1, Shuffle::none, 0},
                    {.sequence = sequence,
                     .batches = kMicrosPerStep,
                     .micro_batch = 1,
                     .micros =
                         [](std::int64_t) {
                           return std::vector<std::int64_t>{0, 1, 2, 3};
                         },
                     .depth_steps = 1,
                     .memory = memory},
                    0);
      TrainStep step(engine, [&] { return loader.next(); });
      TrainingCounters counters;
      std::vector<double> losses;
      for (std::int64_t i = 0; i < kTrainSteps; ++i) {
        losses.push_back(step.run(counters, 0).loss);
      }
      return losses;
    });
  }

  Result evaluate(bool pinned, std::uint64_t seed) {
    return on_device(pinned, seed, [&](Engine& engine, Pool* memory) {
      const LossesOf losses_of = [&](const TokenSource& tokens, std::int64_t batch,
                                     std::int64_t count, double* losses) {
        engine.replica().evaluate(tokens, batch, count, losses);
      };
      const EvaluationPlan plan{engine.config().data.sequence, 1, 8, 1, memory};
      return std::vector<double>{
          trireme::evaluate(*dataset_, plan, engine.world(), losses_of).loss};
    });
  }

  std::optional<Dataset> dataset_;
  std::uint64_t seed_ = 0;
};

TEST_F(PinnedTokensTest, TrainingCopiesThemOnce) {
  const Result ordinary = train(false, 0);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const Result pinned = train(true, seed);
    EXPECT_EQ(pinned.losses, ordinary.losses) << "seed " << seed;
    EXPECT_EQ(ordinary.staged - pinned.staged, 2 * kMicrosPerStep * kTrainSteps)
        << "ids and targets";
  }
}

TEST_F(PinnedTokensTest, EvaluationCopiesThemOnce) {
  const Result ordinary = evaluate(false, 0);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const Result pinned = evaluate(true, seed);
    EXPECT_EQ(pinned.losses, ordinary.losses) << "seed " << seed;
    EXPECT_EQ(ordinary.staged - pinned.staged, 2 * 8);
  }
}

}  // namespace
}  // namespace trireme
