// A process is killed at each point that a save passes; the next one finds a good checkpoint, takes
// the folder over, cleans up, and goes on.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/checkpoint/checkpoint_fault_sites.h"
#include "mpi/self_communicator.h"
#include "src/base/fault.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Saves the step in a child that SIGKILLs itself at the point. Only what is signed or encrypted
// passes some of the points.
void die_at(const fs::path& folder, const std::string& point, const State& state,
            std::int64_t step) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    SelfCommunicator comm;
    DiskOptions options = options_for(folder);
    options.retention.keep = 2;
    options.io.sha256 = true;
    options.provenance = [](const Manifest&, std::string_view) { return std::string("signed\n"); };
    arm_faults(parse_fault_plan(fmt::format("ckpt.{}:0:1:kill", point), kCheckpointFaultSites), 0,
               1);
    try {
      DiskTarget target(comm, options);
      CheckpointWriter writer(comm, target);
      const Blocks blocks = cut_state(state, cut_nothing, 0, 1);
      std::shared_ptr<const FolderKey> key;
      if (point == "keys_written") {
        key = std::make_shared<const FolderKey>(FolderKey{DataKey::generate(), {}});
      }
      writer.save(meta_of(step), blocks.list, nullptr, key);
      writer.finish();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status)) << point << " was not passed";
}

void expect_clean(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const bool known =
        name == "GENERATION" || name == "LATEST" || name.starts_with("step-") || name == "run.lock";
    EXPECT_TRUE(known) << name;
  }
}

class Crash : public testing::TestWithParam<const char*> {};

TEST_P(Crash, LosesAtMostTheAttempt) {
  TempFolder folder;
  const State second = small_state(2);
  const State third = small_state(3);
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), second, 2).durable);
  ASSERT_NO_FATAL_FAILURE(die_at(folder.path(), GetParam(), third, 3));

  const LoadedState loaded = load_state(folder.path(), second);
  ASSERT_TRUE(loaded.resumed.has_value());
  EXPECT_TRUE(loaded.resumed->skipped.empty()) << loaded.resumed->skipped[0];
  const bool is_committed = loaded.resumed->manifest.meta.step == 3;
  EXPECT_TRUE(is_committed ? load_state(folder.path(), third).equal : loaded.equal);

  // Save the same step again, and one more.
  ASSERT_TRUE(save_state(folder.path(), third, 3).durable);
  EXPECT_TRUE(load_state(folder.path(), third).equal);
  ASSERT_TRUE(save_state(folder.path(), second, 4).durable);
  EXPECT_TRUE(load_state(folder.path(), second).equal);
  expect_clean(folder.path());
}

INSTANTIATE_TEST_SUITE_P(Points, Crash,
                         testing::Values("snapshot", "snapshot_taken", "shard_open", "shard_write",
                                         "shard_sync", "shard_read_back", "shard_done", "gather",
                                         "manifest_write", "keys_written", "provenance_written",
                                         "manifest_written", "directory_synced", "fence", "rename",
                                         "renamed", "latest_written", "gc_before", "gc_renamed",
                                         "gc_mid", "gc_after"),
                         [](const auto& test) { return std::string(test.param); });

// The crash happens after the old step was set aside and before the new one is in its place.
TEST(CrashWhileReplacing, PutsTheOldOneBack) {
  TempFolder folder;
  const State old = small_state(1);
  ASSERT_TRUE(save_state(folder.path(), old, 5).durable);
  ASSERT_NO_FATAL_FAILURE(die_at(folder.path(), "rename", small_state(2), 5));
  EXPECT_FALSE(fs::exists(step_path(folder.path(), 5)));
  ThreadWorld(1).run(
      [&](Communicator& comm) { const DiskTarget writer(comm, options_for(folder.path())); });
  EXPECT_TRUE(load_state(folder.path(), old).equal);
  expect_clean(folder.path());
}

TEST(CrashWhileReplacing, KeepsTheNewOneOnceItStands) {
  TempFolder folder;
  const State newer = small_state(2);
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 5).durable);
  ASSERT_NO_FATAL_FAILURE(die_at(folder.path(), "renamed", newer, 5));
  ThreadWorld(1).run(
      [&](Communicator& comm) { const DiskTarget writer(comm, options_for(folder.path())); });
  EXPECT_TRUE(load_state(folder.path(), newer).equal);
  expect_clean(folder.path());
}

}  // namespace
}  // namespace trireme
