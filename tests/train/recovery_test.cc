#include "src/train/recovery/recovery.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/writer.h"
#include "mpi/thread/thread_world.h"
#include "src/train/recovery/replay_start.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using Steps = std::vector<std::int64_t>;

TrainingCounters counters_at(std::int64_t step, std::vector<DataWindow> left_out = {}) {
  TrainingCounters counters;
  counters.step = step;
  counters.updates = step;
  counters.rewinds = static_cast<std::int64_t>(left_out.size());
  counters.left_out = std::move(left_out);
  return counters;
}

// Writes the checkpoints of one start of a run.
void save(const TempFolder& folder, const std::vector<TrainingCounters>& all) {
  ThreadWorld(1).run([&](Communicator& comm) {
    std::vector<float> values = {1, 2, 3};
    const View view{values.data(), 3, DType::f32};
    DiskTarget target(comm, {.folder = folder.path(), .retention = {.keep = 100}});
    CheckpointWriter writer(comm, target);
    for (const TrainingCounters& counters : all) {
      CheckpointMeta meta;
      meta.step = counters.step;
      (*meta.extra)["counters"] = to_json(counters);
      const std::vector<TensorBlock> blocks = {{"w", {3}, Extent::whole({3}), view}};
      writer.save(meta, blocks);
      EXPECT_TRUE(writer.finish()->durable);
    }
  });
}

TEST(RewindSteps, AreMultiplesFarEnoughBackNewestFirst) {
  const TempFolder folder;
  save(folder,
       {counters_at(10), counters_at(20), counters_at(27), counters_at(30), counters_at(40)});
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(45), 10, 5), (Steps{40, 30, 20, 10}));
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(45), 10, 6), (Steps{30, 20, 10}));
  // A signal caused the save of step 27, which an uninterrupted run does not have.
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(39), 10, 10), (Steps{20, 10}));
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(40), 10, 0), (Steps{40, 30, 20, 10}));
}

TEST(RewindSteps, BeginAnewWithinTheFirstInterval) {
  const TempFolder folder;
  save(folder, {counters_at(10), counters_at(20)});
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(12), 10, 5), (Steps{0}));
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(3), 10, 5), (Steps{0}));
  EXPECT_EQ(rewind_steps(folder.path() / "none", counters_at(0), 10, 0), (Steps{0}));
}

TEST(RewindSteps, AreNoneWhereNothingIsLeft) {
  const TempFolder folder;
  save(folder, {counters_at(90), counters_at(100)});
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(95), 10, 20), Steps{});
}

TEST(RewindSteps, PassOverALineThatWasGivenUp) {
  const TempFolder folder;
  save(folder, {counters_at(10), counters_at(20), counters_at(30), counters_at(40)});
  // The run went back from 45 to 20 and has come to 43 again, but could not save step 30.
  const std::vector<DataWindow> window = {{20, 20, 26}};
  save(folder, {counters_at(20, window), counters_at(40, window)});
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(43, window), 10, 3), (Steps{40, 20, 10}));
}

TEST(RewindSteps, PassOverWhatIsDamaged) {
  const TempFolder folder;
  save(folder, {counters_at(10), counters_at(20)});
  std::filesystem::remove(folder.path() / "step-00000020" / "manifest.json");
  EXPECT_EQ(rewind_steps(folder.path(), counters_at(29), 10, 5), (Steps{10}));
}

TEST(ReplayStart, HasTheDataOfTheSteps) {
  const TempFolder folder;
  const DataWindow window{20, 20, 15};
  save(folder, {counters_at(10), counters_at(20), counters_at(30)});
  const auto start = [&](const TrainingCounters& now, std::int64_t last) {
    const auto found = replay_start(folder.path(), now, last);
    return !found ? std::string("none") : found->from_seed ? "seed" : std::to_string(found->step);
  };
  EXPECT_EQ(start(counters_at(34), 35), "30");
  EXPECT_EQ(start(counters_at(34), 30), "20") << "step 30 is to be computed";
  EXPECT_EQ(start(counters_at(34), 5), "seed");
  // The run went back to step 20, but has not saved a checkpoint with the window yet.
  EXPECT_EQ(start(counters_at(24, {window}), 25), "none");
  EXPECT_EQ(start(counters_at(24, {window}), 18), "10") << "before it went back";
  save(folder, {counters_at(20, {window})});
  EXPECT_EQ(start(counters_at(34, {window}), 35), "20")
      << "step 30 is of the line that was given up";
}

TEST(ReplayStart, OfARunThatWentBackToTheBeginning) {
  const TempFolder folder;
  const DataWindow window{0, 0, 9};
  EXPECT_FALSE(replay_start(folder.path(), counters_at(3, {window}), 4).has_value());
  save(folder, {counters_at(0, {window})});
  const auto start = replay_start(folder.path(), counters_at(3, {window}), 4);
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->step, 0);
  EXPECT_FALSE(start->from_seed);
}

}  // namespace
}  // namespace trireme
