// Tests that an interrupted pack goes on where it stopped, and with nothing that has changed since.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/packer.h"
#include "src/base/error.h"
#include "tests/io/data/packed_folder.h"

namespace trireme {
namespace {

using PackerRestart = DataTest;

TEST_F(PackerRestart, AnInterruptedPackGoesOn) {
  for (int i = 0; i < 10; ++i) {
    write_random_text(fmt::format("in/{}.txt", i), 30'000, i);
  }
  PackOptions o = options("in", "out");
  o.shard_bytes = 1 << 16;
  pack(o, {});
  const auto whole = files_of_folder(o.out);
  o.out = folder_ / "resumed";
  // Stops in the middle of a shard, as after a full disk or a kill.
  std::int64_t reports = 0;
  o.progress = [&](std::int64_t, std::int64_t) {
    if (++reports == 7) {
      throw IoError("the power went");
    }
  };
  EXPECT_THROW(pack(o, {}), IoError);
  EXPECT_THROW(Dataset::open(o.out), DataError);
  write("resumed/shards/00003.h5.tmp", "half written");
  write("resumed/shards/00044.h5", "of an earlier plan");
  // A finished shard has been damaged meanwhile, so it must be made again.
  flip_bit(o.out / "shards/00000.h5", 5000);
  o.progress = {};
  const PackReport report = pack(o, {}).front();
  EXPECT_GE(report.kept_shards, 1);
  EXPECT_LT(report.kept_shards, report.shards - 1);
  EXPECT_EQ(files_of_folder(o.out), whole);
  EXPECT_TRUE(pack(o, {}).front().was_complete);
}

// With another label, it is another dataset.
TEST_F(PackerRestart, AnInterruptedPackKeepsNoShardsOfAnotherLabel) {
  for (int i = 0; i < 4; ++i) {
    write_random_text(fmt::format("in/{}.txt", i), 30'000, i);
  }
  PackOptions o = options("in", "out");
  o.shard_bytes = 1 << 16;
  const auto stop = [](std::int64_t done, std::int64_t total) {
    if (done == total) {
      throw IoError("the power went");
    }
  };
  o.label = parse_label({"classification=secret"});
  o.progress = stop;
  EXPECT_THROW(pack(o, {}), IoError);
  PackOptions other = o;
  for (const char* const word : {"", "classification=public"}) {
    other.label = *word == 0 ? kUnlabelled : parse_label({word});
    other.progress = stop;
    EXPECT_THROW(pack(other, {}), IoError);
    other.progress = {};
    EXPECT_GE(pack(other, {}).front().kept_shards, 1) << word;
    fs::remove_all(o.out);
    EXPECT_THROW(pack(o, {}), IoError);
    EXPECT_EQ(pack(other, {}).front().kept_shards, 0) << word;
    fs::remove_all(o.out);
    EXPECT_THROW(pack(o, {}), IoError);
  }
}

// The encrypted shards of an earlier start are not thrown away for plain ones.
TEST_F(PackerRestart, APackThatWasBegunWithKeysDoesNotGoOnWithoutThem) {
  write("in/a.txt", "some words");
  write("out/.pack/keys.json", "{}");
  EXPECT_THAT(message_of<PolicyError>([&] { pack(options("in", "out"), {}); }),
              testing::HasSubstr("was begun with keys"));
  EXPECT_TRUE(fs::exists(folder_ / "out/.pack/keys.json"));
}

// Shards without a manifest and without .pack would be files of another program.
TEST_F(PackerRestart, AFailureLeavesWhatAnEarlierStartHasPackedUnfinished) {
  write_random_text("in/a.txt", 30'000, 1);
  PackOptions o = options("in", "out");
  o.label = parse_label({"classification=secret"});
  o.progress = [](std::int64_t, std::int64_t) { throw IoError("the disk is full"); };
  fs::create_directories(o.out / ".pack");
  fs::create_directories(o.out / "shards");
  write("out/shards/00000.h5", "packed by an earlier start, which was killed before its note");
  EXPECT_THROW(pack(o, {}), IoError);
  EXPECT_TRUE(fs::exists(o.out / ".pack"));
  o.progress = {};
  EXPECT_EQ(pack(o, {}).front().kept_shards, 0);
  fs::remove_all(o.out);
  o.progress = [](std::int64_t, std::int64_t) { throw IoError("the disk is full"); };
  EXPECT_THROW(pack(o, {}), IoError);
  EXPECT_FALSE(fs::exists(o.out)) << "nothing was packed";
}

// The file keeps its size and modification time, but its content changes.
TEST_F(PackerRestart, ARestartSeesWhatChangedInDisguise) {
  for (int i = 0; i < 4; ++i) {
    write_random_text(fmt::format("in/{}.txt", i), 30'000, i);
  }
  PackOptions o = options("in", "out");
  o.shard_bytes = 1 << 16;
  o.progress = [](std::int64_t done, std::int64_t total) {
    if (done == total) {
      throw IoError("the power went");
    }
  };
  EXPECT_THROW(pack(o, {}), IoError);
  const auto time = fs::last_write_time(folder_ / "in/1.txt");
  write_random_text("in/1.txt", 30'000, 99);
  fs::last_write_time(folder_ / "in/1.txt", time);
  o.progress = {};
  const PackReport report = pack(o, {}).front();
  EXPECT_GE(report.kept_shards, 1);
  EXPECT_EQ(documents_of_folder(o.out)[1], read_file(folder_ / "in/1.txt"));
}

}  // namespace
}  // namespace trireme
