#include <chrono>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/at_faults.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Takes the last free page of a file system.
void fill_disk(const fs::path& folder) {
  const int fd =
      ::open((folder / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string page(4096, 'x');
  while (::write(fd, page.data(), page.size()) > 0) {
  }
  ::close(fd);
}

void expect_no_remains(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    EXPECT_FALSE(name.starts_with(".")) << name;
  }
}

#define SKIP_UNLESS_MOUNTED(disk)                                                   \
  if (!(disk).mounted()) {                                                          \
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN"; \
  }

class DiskFillsAt : public testing::TestWithParam<const char*> {};

TEST_P(DiskFillsAt, TrainingGoesOnAndTheOlderOneStays) {
  const SmallFileSystem disk(24 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  const fs::path folder = disk.path() / "checkpoints";
  const State old = small_state();
  ASSERT_TRUE(save_state(folder, old, 1).durable);
  {
    const AtFaults filling([&](std::string_view point) {
      if (point == GetParam()) {
        fill_disk(disk.path());
      }
    });
    ThreadWorld(2).run([&](Communicator& comm) {
      DiskTarget target(comm, options_for(folder));
      CheckpointWriter writer(comm, target);
      const Blocks blocks = cut_state(large_state(), cut_flat, comm.rank(), 2);
      writer.save(meta_of(2), blocks.list);
      const auto outcome = writer.finish();
      EXPECT_FALSE(outcome->durable);
      EXPECT_THAT(outcome->message,
                  AllOf(HasSubstr("rank "), AnyOf(HasSubstr("full"), HasSubstr("free space"))));
      comm.barrier().wait();
      if (comm.rank() == 0) {
        expect_no_remains(folder);
        fs::remove(disk.path() / "filler");
      }
      comm.barrier().wait();
      EXPECT_EQ(writer.stats().failed, 1);
    });
  }
  const LoadedState loaded = load_state(folder, old);
  EXPECT_TRUE(loaded.equal);
  EXPECT_TRUE(loaded.resumed->skipped.empty());
  EXPECT_TRUE(save_state(folder, large_state(), 2).durable);  // the same step, once there is space
  EXPECT_TRUE(load_state(folder, large_state()).equal);
}

INSTANTIATE_TEST_SUITE_P(Points, DiskFillsAt,
                         testing::Values("ckpt.snapshot_taken", "ckpt.shard_open",
                                         "ckpt.manifest_write"),
                         [](const auto& test) { return std::string(test.param).substr(5); });

TEST(Disk, OfAnySizeHoldsAGoodCheckpoint) {
  int durable = 0;
  int failed = 0;
  for (std::size_t bytes = 256 << 10; bytes <= (14 << 20); bytes += bytes / 3) {
    const SmallFileSystem disk(bytes);
    SKIP_UNLESS_MOUNTED(disk);
    const fs::path folder = disk.path() / "checkpoints";
    ASSERT_TRUE(save_state(folder, small_state(), 1).durable) << bytes;
    const SaveOutcome outcome = save_state(folder, large_state(), 2, cut_flat, 4);
    ++(outcome.durable ? durable : failed);
    EXPECT_EQ(outcome.message.empty(), outcome.durable) << outcome.message;
    expect_no_remains(folder);
    EXPECT_TRUE(load_state(folder, outcome.durable ? large_state() : small_state()).equal) << bytes;
    EXPECT_TRUE(fs::exists(step_path(folder, 1)));
  }
  EXPECT_GT(durable, 0);
  EXPECT_GT(failed, 0);
}

TEST(Disk, AFullOneAtTheHintIsOnlyAWarning) {
  const SmallFileSystem disk(4 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  const fs::path folder = disk.path() / "checkpoints";
  const AtFaults filling([&](std::string_view point) {
    if (point == "ckpt.renamed") {
      fill_disk(disk.path());
    }
  });
  const SaveOutcome outcome = save_state(folder, small_state(), 1);
  EXPECT_TRUE(outcome.durable);
  EXPECT_THAT(outcome.message, HasSubstr("LATEST"));
  EXPECT_TRUE(load_state(folder, small_state()).equal);
}

TEST(Commit, ALinkInThePlaceOfTheHintIsReplaced) {
  const TempFolder folder;
  fs::create_symlink(".", folder.path() / "LATEST");  // leads to a folder
  const SaveOutcome outcome = save_state(folder.path(), small_state(), 1);
  EXPECT_TRUE(outcome.durable);
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(read_file(folder.path() / "LATEST"), "step-00000001\n");
}

TEST(Disk, ReadOnlyAtTheStartIsAnErrorOnAllRanks) {
  const SmallFileSystem disk(4 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  ASSERT_EQ(::mount("tmpfs", disk.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
  for (const fs::path& folder : {disk.path(), disk.path() / "new"}) {
    std::atomic<int> refused = 0;
    ThreadWorld(2).run([&](Communicator& comm) {
      try {
        const DiskTarget writer(comm, options_for(folder));
      } catch (const IoError& e) {
        EXPECT_THAT(e.what(), HasSubstr("read-only"));
        ++refused;
      }
    });
    EXPECT_EQ(refused, 2);
  }
}

TEST(Disk, ReadOnlyForAWhileIsSurvived) {
  const SmallFileSystem disk(4 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  const fs::path folder = disk.path() / "checkpoints";
  // The kernel refuses to remount while a file is still open for writing, so this tries again.
  const auto remount = [&](unsigned long flags) {
    int code = -1;
    for (int i = 0; i < 500 && code != 0; ++i) {
      code = ::mount("tmpfs", disk.path().c_str(), "tmpfs", MS_REMOUNT | flags, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(code == 0 ? 0 : 10));
    }
    return code;
  };
  ThreadWorld(2).run([&](Communicator& comm) {
    DiskTarget target(comm, options_for(folder));
    CheckpointWriter writer(comm, target);
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 2);
    for (const std::int64_t step : {1, 2, 3}) {
      comm.barrier().wait();
      if (comm.rank() == 0 && step > 1) {
        EXPECT_EQ(remount(step == 2 ? MS_RDONLY : 0), 0);
      }
      comm.barrier().wait();
      writer.save(meta_of(step), blocks.list);
      const auto outcome = writer.finish();
      EXPECT_EQ(outcome->durable, step != 2) << outcome->message;
      EXPECT_THAT(outcome->message, HasSubstr(step == 2 ? "read-only" : ""));
    }
  });
  EXPECT_THAT(names_in(folder),
              testing::ElementsAre("GENERATION", "LATEST", "step-00000001", "step-00000003"));
}

TEST(Failure, OfOneRankIsThatOfAll) {
  TempFolder folder;
  std::atomic<bool> is_gone = false;
  const AtFaults failing([&](std::string_view point) {
    if (point == "ckpt.shard_sync" && !is_gone.exchange(true)) {
      throw IoError("the disk of this rank is gone");
    }
  });
  ThreadWorld(3).run([&](Communicator& comm) {
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 3);
    writer.save(meta_of(1), blocks.list);
    const auto outcome = writer.finish();
    EXPECT_FALSE(outcome->durable);
    EXPECT_THAT(outcome->message,
                AllOf(HasSubstr("rank "), HasSubstr("the disk of this rank is gone")));
  });
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("GENERATION"));
  EXPECT_FALSE(load_state(folder.path(), small_state()).resumed.has_value());
}

TEST(Failure, WhatDoesNotReadBackIsNotCommitted) {
  TempFolder folder;
  const AtFaults damaging([&](std::string_view point) {
    if (point == "ckpt.shard_read_back") {
      const fs::path shard = folder.path() / ".tmp-1-1" / "shard-00000.safetensors";
      const int fd = ::open(shard.c_str(), O_WRONLY | O_CLOEXEC);
      EXPECT_EQ(::pwrite(fd, "?", 1, 4200), 1);
      EXPECT_EQ(::fsync(fd), 0);
      ::close(fd);
    }
  });
  const SaveOutcome outcome = save_state(folder.path(), small_state(), 1);
  EXPECT_FALSE(outcome.durable);
  EXPECT_THAT(outcome.message, HasSubstr("reads back differently"));
}

TEST(Failure, AnAbandonedSaveLeavesNothingToLoad) {
  TempFolder folder;
  ThreadWorld(2).run([&](Communicator& comm) {
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 2);
    writer.save(meta_of(1), blocks.list);
  });
  EXPECT_FALSE(load_state(folder.path(), small_state()).resumed.has_value());
  EXPECT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  expect_no_remains(folder.path());
}

}  // namespace
}  // namespace trireme
