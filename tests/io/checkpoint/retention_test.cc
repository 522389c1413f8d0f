#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/at_faults.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

StepFolder folder_of(std::int64_t step, bool read_back = true) {
  StepFolder folder;
  folder.path = step_folder_name(step);
  folder.step = step;
  folder.manifest.emplace();
  folder.manifest->read_back = read_back;
  return folder;
}

std::vector<std::string> doomed(const std::vector<StepFolder>& steps, const Retention& retention) {
  std::vector<std::string> names;
  for (const fs::path& path : plan_retention(steps, retention)) {
    names.push_back(path.filename().string());
  }
  return names;
}

TEST(Retention, KeepsTheNewest) {
  const std::vector<StepFolder> steps = {folder_of(5), folder_of(4), folder_of(3), folder_of(2)};
  EXPECT_THAT(doomed(steps, {2, 0}), ElementsAre("step-00000003", "step-00000002"));
  EXPECT_THAT(doomed(steps, {4, 0}), IsEmpty());
}

TEST(Retention, KeepsAtLeastTwo) {
  EXPECT_THROW(plan_retention({}, {1, 0}), ConfigError);
  EXPECT_THROW(plan_retention({}, {-3, 0}), ConfigError);
  TempFolder folder;
  ThreadWorld(1).run([&](Communicator& comm) {
    DiskOptions options = options_for(folder.path());
    options.retention.keep = 1;
    EXPECT_THROW(DiskTarget(comm, options), ConfigError);
  });
}

TEST(Retention, DoesNotCountDamagedSteps) {
  const std::vector<StepFolder> steps = {folder_of(5), folder_of(4), folder_of(3), folder_of(2)};
  Retention retention{2, 0};
  retention.damaged = {{4, 0}, {2, 1}};
  EXPECT_THAT(doomed(steps, retention), ElementsAre("step-00000002"));
  retention.damaged = {{5, 0}, {4, 0}};
  EXPECT_THAT(doomed(steps, retention), IsEmpty());
}

TEST(Retention, CountsOnlyWhatWasReadBack) {
  const std::vector<StepFolder> steps = {folder_of(5, false), folder_of(4), folder_of(3, false),
                                         folder_of(2), folder_of(1)};
  EXPECT_THAT(doomed(steps, {2, 0}), ElementsAre("step-00000001"));
}

// A rewind needs multiples of 100, which steps that were saved at stops must not displace.
TEST(Retention, CountsWhatARewindMayNeed) {
  const std::vector<StepFolder> steps = {folder_of(370), folder_of(350), folder_of(300),
                                         folder_of(200), folder_of(100)};
  EXPECT_THAT(doomed(steps, {2, 0, 100}), ElementsAre("step-00000350", "step-00000100"));
  EXPECT_THAT(doomed(steps, {3, 0, 100}), ElementsAre("step-00000350"));
  EXPECT_THAT(doomed({folder_of(350), folder_of(50)}, {2, 0, 100}), ElementsAre("step-00000050"));
}

TEST(Retention, LeavesMilestonesPinsAndDamageAlone) {
  std::vector<StepFolder> steps = {folder_of(50), folder_of(40), folder_of(30), folder_of(20),
                                   folder_of(10)};
  steps[3].manifest.reset();
  steps[4].pinned = true;
  EXPECT_THAT(doomed(steps, {2, 0}), ElementsAre("step-00000030"));
  EXPECT_THAT(doomed(steps, {2, 15}), IsEmpty());
}

TEST(Retention, KeepsWhatTheNewestStepLists) {
  std::vector<StepFolder> steps = {folder_of(60, false), folder_of(50), folder_of(40),
                                   folder_of(30),        folder_of(20), folder_of(10)};
  steps[0].manifest.reset();
  (*steps[1].manifest->meta.extra)["keep_steps"] = {20, 30, "x", -1, 99};
  (*steps[2].manifest->meta.extra)["keep_steps"] = {10};
  EXPECT_THAT(doomed(steps, {2, 0}), ElementsAre("step-00000010"));
  (*steps[1].manifest->meta.extra)["keep_steps"] = "all";
  EXPECT_THAT(doomed(steps, {2, 0}),
              ElementsAre("step-00000030", "step-00000020", "step-00000010"));
}

TEST(Retention, RunsAfterEachSave) {
  TempFolder folder;
  DiskOptions options = options_for(folder.path());
  options.retention = {2, 4};
  ThreadWorld(2).run([&](Communicator& comm) {
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 2);
    for (std::int64_t step = 1; step <= 7; ++step) {
      DiskTarget target(comm, options);  // its end waits for the deletions
      CheckpointWriter writer(comm, target);
      writer.save(meta_of(step), blocks.list);
      EXPECT_TRUE(writer.finish()->durable);
      if (step == 2 && comm.rank() == 0) {
        File::create_new(step_path(folder.path(), 2) / kPinnedName).close();
      }
      comm.barrier().wait();
    }
  });
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("GENERATION", "LATEST", "step-00000002", "step-00000004", "step-00000006",
                          "step-00000007"));
}

// A run that was sent back to step 1 saves step 4 again while the old steps, among them the old
// step 4, are being deleted.
TEST(Retention, LeavesAStepAloneThatWasReplacedMeanwhile) {
  TempFolder folder;
  for (const std::int64_t step : {1, 2, 3, 4, 5}) {
    DiskOptions options = options_for(folder.path());
    options.retention.keep = 10;
    ASSERT_TRUE(save_state(folder.path(), small_state(), step).durable);
  }
  std::atomic<bool> is_deleting = false;
  std::atomic<bool> is_replaced = false;
  DiskOptions options = options_for(folder.path());
  options.retention.keep = 2;
  const AtFaults deleting([&](std::string_view point) {
    if (point == "ckpt.gc_mid" && !is_deleting.exchange(true)) {
      while (!is_replaced) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  });
  ThreadWorld(1).run([&](Communicator& comm) {
    DiskTarget target(comm, options);
    CheckpointWriter writer(comm, target);
    const Blocks blocks = cut_state(small_state(), cut_nothing, 0, 1);
    writer.save(meta_of(2), blocks.list);
    EXPECT_TRUE(writer.finish()->durable);
    while (!is_deleting) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (const std::int64_t step : {3, 4}) {
      writer.save(meta_of(step), blocks.list);
      EXPECT_TRUE(writer.finish()->durable);
    }
    is_replaced = true;
    EXPECT_TRUE(target.quiet_within(std::chrono::seconds(20)));
    for (const std::int64_t step : {3, 4}) {
      const StepFolder now = inspect_step(step_path(folder.path(), step));
      ASSERT_TRUE(now.manifest) << step;
      EXPECT_EQ(now.manifest->generation, target.generation()) << step;
    }
  });
}

TEST(Retention, DoesNotFollowSymbolicLinks) {
  TempFolder folder;
  TempFolder elsewhere;
  for (const std::int64_t step : {1, 2, 3, 4}) {
    ASSERT_TRUE(save_state(folder.path(), small_state(), step).durable);
  }
  const fs::path target = elsewhere.path() / "kept";
  fs::rename(step_path(folder.path(), 1), target);
  fs::create_directory_symlink(target, step_path(folder.path(), 1));
  fs::create_directory_symlink(target, folder.path() / ".tmp-9-0");
  File::create_new(elsewhere.path() / "file").close();
  fs::create_symlink(elsewhere.path() / "file", step_path(folder.path(), 2) / "link");
  EXPECT_THAT(doomed(list_steps(folder.path()), {2, 0}), ElementsAre("step-00000002"));
  delete_step(step_path(folder.path(), 2), 1);
  clean_remains(folder.path(), 100);
  EXPECT_FALSE(fs::exists(fs::symlink_status(folder.path() / ".tmp-9-0")));
  EXPECT_TRUE(fs::exists(target / kManifestName));
  EXPECT_TRUE(fs::exists(elsewhere.path() / "file"));
}

TEST(Retention, RemovesOnlyTheDraftsThatItsOwnWritersLeave) {
  TempFolder folder;
  const std::vector<std::string> drafts = {"run.lock.0123456789abcdef",
                                           "run.lock.stale-0123456789abcdef", "LATEST.tmp-123",
                                           "GENERATION.tmp-4"};
  const std::vector<std::string> kept = {"GENERATION.bak", "GENERATION.tmp-", "LATEST.notes",
                                         "LATEST.tmp-1x",  "run.lock.0123",   "run.lock.bak"};
  for (const std::vector<std::string>& names : {drafts, kept}) {
    for (const std::string& name : names) {
      File::create_new(folder.path() / name).close();
    }
  }
  for (const char* name : {"LATEST.tmp-77", "run.lock.dir"}) {
    fs::create_directory(folder.path() / name);
    File::create_new(folder.path() / name / "notes").close();
  }
  clean_remains(folder.path(), 100);
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("GENERATION.bak", "GENERATION.tmp-", "LATEST.notes", "LATEST.tmp-1x",
                          "LATEST.tmp-77", "run.lock.0123", "run.lock.bak", "run.lock.dir"));
}

TEST(Retention, AReaderOfADeletedStepGetsItsBytesOrAnError) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), small_state(2), 2).durable);
  const StepFolder old = inspect_step(step_path(folder.path(), 1));
  const Manifest manifest = old.manifest.value();
  const std::string digest = logical_digest(old.path, manifest, DigestScope::all);
  int read = 0;
  int refused = 0;
  {
    const AtFaults reading([&](std::string_view point) {
      if (!point.starts_with("ckpt.gc_")) {
        return;
      }
      try {
        EXPECT_EQ(logical_digest(old.path, manifest, DigestScope::all), digest);
        ++read;
      } catch (const Error&) {
        ++refused;
      }
      EXPECT_TRUE(load_state(folder.path(), small_state(2)).equal);
    });
    delete_step(old.path, 1);
  }
  EXPECT_EQ(read, 1);  // before the rename
  EXPECT_EQ(refused, 3);
}

TEST(Store, NamesAFewOfManyBrokenSteps) {
  TempFolder folder;
  for (std::int64_t step = 1; step <= 500; ++step) {
    fs::create_directory(step_path(folder.path(), step));
  }
  std::vector<std::string> skipped;
  const std::string refusal = message_of<DataError>([&] { find_step(folder.path(), skipped); });
  EXPECT_EQ(std::count(refusal.begin(), refusal.end(), '\n'), 6);
  EXPECT_THAT(refusal, testing::HasSubstr("495 more steps in " + folder.path().string()));
  ASSERT_TRUE(save_state(folder.path(), small_state(), 501).durable);
  EXPECT_EQ(find_step(folder.path(), skipped).step, 501);
  EXPECT_EQ(skipped.size(), 6U);
  const LoadedState loaded = load_state(folder.path(), small_state());
  EXPECT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed.value().skipped.size(), 6U);
}

// A user may give the folder of all checkpoints a name like that of a step.
TEST(Store, KnowsAFolderOfStepsByItsContents) {
  TempFolder folder;
  const fs::path steps = folder.path() / "step-00000005";
  fs::create_directory(steps);
  EXPECT_TRUE(is_step_folder(steps));
  ASSERT_TRUE(save_state(steps, small_state(), 7).durable);
  EXPECT_FALSE(is_step_folder(steps));
  std::vector<std::string> skipped;
  EXPECT_EQ(find_step(steps, skipped).step, 7);
  fs::remove_all(steps / "step-00000007");
  EXPECT_FALSE(is_step_folder(steps)) << "a run has written here";
  EXPECT_TRUE(load_state(steps, small_state()).resumed == std::nullopt);
}

TEST(Store, OrdersByRunThenByStep) {
  TempFolder folder;
  for (const std::int64_t step : {50, 100, 150}) {
    ASSERT_TRUE(save_state(folder.path(), small_state(1), step).durable);
  }
  // A run that goes back to 100 and then reaches 110 is the newest, although step 150 exists.
  ASSERT_TRUE(save_state(folder.path(), small_state(2), 110).durable);
  std::vector<std::int64_t> order;
  for (const StepFolder& step : list_steps(folder.path())) {
    order.push_back(step.step);
  }
  EXPECT_THAT(order, ElementsAre(110, 150, 100, 50));
  EXPECT_TRUE(load_state(folder.path(), small_state(2)).equal);
}

TEST(Store, FindsAStepByItsFolderOrTheNewestOfMany) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), small_state(), 2).durable);
  std::vector<std::string> skipped;
  EXPECT_EQ(find_step(folder.path(), skipped).step, 2);
  EXPECT_EQ(find_step(folder.path() / "", skipped).step, 2);
  EXPECT_EQ(find_step(step_path(folder.path(), 1), skipped).step, 1);
  EXPECT_EQ(find_step(step_path(folder.path(), 1) / "", skipped).step, 1);
  fs::copy(step_path(folder.path(), 1), folder.path() / "best");
  EXPECT_EQ(find_step(folder.path() / "best", skipped).step, 1);
  EXPECT_THAT(skipped, IsEmpty());
  EXPECT_THROW(find_step(step_path(folder.path(), 3), skipped), NotFound);
  EXPECT_THROW(find_step(folder.path() / "nowhere", skipped), NotFound);
  fs::remove(step_path(folder.path(), 1) / "shard-00000.safetensors");
  fs::remove(step_path(folder.path(), 2) / kManifestName);
  EXPECT_THROW(find_step(folder.path(), skipped), DataError);
  EXPECT_THROW(find_step(step_path(folder.path(), 1), skipped), DataError);
}

}  // namespace
}  // namespace trireme
