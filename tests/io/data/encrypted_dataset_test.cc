#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/dataset_list.h"
#include "io/data/shard_writer.h"
#include "io/data/stage.h"
#include "io/data/verify.h"
#include "src/base/digest.h"
#include "tests/io/data/encrypted_data.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using EncryptedDataset = EncryptedDataTest;

// Returns the text as the tokenizer `bytes` stores it in a shard, 16 bits for each byte.
std::string as_stored(std::string_view text) {
  std::string stored;
  for (const char c : text) {
    stored += {c, '\0'};
  }
  return stored;
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files.push_back(entry.path().lexically_relative(folder));
    }
  }
  std::ranges::sort(files);
  return files;
}

TEST_F(EncryptedDataset, HoldsWhatThePlainOneHolds) {
  const Dataset sealed = Dataset::open(pack_sealed(), ring_);
  const Dataset plain = Dataset::open(pack_plain());
  EXPECT_EQ(sealed.manifest().shards.size(), 2U);
  EXPECT_EQ(sealed.manifest().digest(), plain.manifest().digest());
  EXPECT_EQ(sealed.manifest().bytes(), plain.manifest().bytes());
  EXPECT_EQ(all_tokens(sealed), all_tokens(plain));
  EXPECT_THAT(files_below(sealed.folder()),
              testing::ElementsAre("keys.json", "manifest.json", "shards/00000.h5.sealed",
                                   "shards/00001.h5.sealed"));
  EXPECT_EQ(sealed.manifest().version(), 2);
  EXPECT_EQ(plain.manifest().version(), 1);
}

TEST_F(EncryptedDataset, ReadsAnyRunAlsoAcrossBlocks) {
  const Dataset sealed = Dataset::open(pack_sealed(), ring_);
  const Dataset plain = Dataset::open(pack_plain());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::byte> scratch;
      std::vector<std::byte> expected_scratch;
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t random = mix64(i * 3 + static_cast<std::uint64_t>(thread));
        const std::size_t shard = random % 2;
        const auto count = static_cast<std::int64_t>(1 + random / 2 % 3000);
        const auto first = static_cast<std::int64_t>(
            random / 7 %
            static_cast<std::uint64_t>(sealed.manifest().shards[shard].n_tokens - 3000));
        const TokenRun run{shard, first, count};
        sealed.will_need(run);
        const std::byte* const found = sealed.read(run, scratch);
        const std::byte* const expected = plain.read(run, expected_scratch);
        EXPECT_TRUE(std::equal(found, found + 2 * count, expected)) << shard << " " << first;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(EncryptedDataset, NothingOfThePlainTextReachesTheDisk) {
  const std::string canary = "the secret of the sovereign site is 4711";
  write_random_text("in/a.txt", 3'000'000, 1);
  write("in/b.txt", canary + " and more\n");
  write_random_text("in/c.txt", 3'000'000, 2);
  int looks = 0;
  PackOptions made = sealed_options("in", "sealed");
  made.shard_bytes = 4'000'000;
  made.progress = [&](std::int64_t, std::int64_t) {  // an interruption leaves what is there now
    ++looks;
    EXPECT_FALSE(contains_bytes(folder_ / "sealed", as_stored(canary)));
    EXPECT_FALSE(contains_bytes(folder_ / "sealed", canary));
  };
  pack(made, {});
  EXPECT_GT(looks, 4);
  const std::string beginning = read_file(folder_ / "in/a.txt").substr(0, 16);
  for (const std::string& text : {canary, beginning}) {
    EXPECT_FALSE(contains_bytes(folder_ / "sealed", as_stored(text)));
  }
  EXPECT_FALSE(contains_bytes(folder_ / "sealed/shards", "tokenizer")) << "HDF5's attributes";
  PackOptions plain = options("in", "plain");
  plain.shard_bytes = made.shard_bytes;
  pack(plain, {});
  EXPECT_TRUE(contains_bytes(folder_ / "plain", as_stored(canary)));
  EXPECT_TRUE(contains_bytes(folder_ / "plain/shards", "tokenizer"));
  // The digests of the plain data would let others check what they guess.
  const DatasetManifest manifest = Dataset::open(folder_ / "plain").manifest();
  EXPECT_FALSE(contains_bytes(folder_ / "sealed", manifest.digest()));
  EXPECT_FALSE(contains_bytes(folder_ / "sealed", hex64(manifest.shards[0].xxh3)));
}

TEST_F(EncryptedDataset, TheRanksShareOneKey) {
  const DatasetManifest alone = Dataset::open(pack_sealed(), ring_).manifest();
  run_ranks(3, [&](const RankGroup& ranks) {
    PackOptions made = options("in", "ranks");
    made.shard_bytes = 2'800'000;
    made.make_key = key_maker(ring_, ranks);
    const std::vector<PackReport> reports = pack(made, ranks);
    EXPECT_EQ(reports.front().digest, alone.digest());
    EXPECT_TRUE(reports.front().is_encrypted);
  });
  EXPECT_EQ(fault_of(folder_ / "ranks", ring_), "");
  EXPECT_NE(Dataset::open(folder_ / "ranks").manifest().data_key, alone.data_key);
}

TEST_F(EncryptedDataset, AnInterruptedPackGoesOnWithItsKey) {
  const std::string digest = Dataset::open(pack_sealed(), ring_).manifest().digest();
  PackOptions made = sealed_options("in", "half");
  made.shard_bytes = 2'800'000;
  made.progress = [&](std::int64_t, std::int64_t) {
    if (fs::exists(folder_ / "half/.pack/00000.json")) {
      throw IoError("the disk is full");
    }
  };
  EXPECT_THROW(pack(made, {}), IoError);
  ASSERT_TRUE(fs::exists(folder_ / "half/.pack/keys.json"));
  made.progress = {};
  const KeyRing other({new_key(folder_, "other")});
  PackOptions foreign = made;
  foreign.make_key = key_maker(other);
  EXPECT_THAT(message_of<PolicyError>([&] { pack(foreign, {}); }),
              HasSubstr("begun with other keys"));
  const std::vector<PackReport> reports = pack(made, {});
  EXPECT_EQ(reports.front().kept_shards, 1);
  EXPECT_EQ(reports.front().digest, digest);
  EXPECT_EQ(fault_of(folder_ / "half", ring_), "");
  EXPECT_FALSE(fs::exists(folder_ / "half/.pack"));
  EXPECT_TRUE(pack(made, {}).front().was_complete);
  EXPECT_EQ(pack(made, {}).front().digest, digest);
}

TEST_F(EncryptedDataset, APackDoesNotMixPlainAndEncryptedShards) {
  (void)pack_sealed();
  PackOptions made = options("in", "half");
  made.shard_bytes = 2'800'000;
  made.progress = [&](std::int64_t, std::int64_t) {
    if (fs::exists(folder_ / "half/.pack/00000.json")) {
      throw IoError("the disk is full");
    }
  };
  EXPECT_THROW(pack(made, {}), IoError);
  made.progress = {};
  made.make_key = key_maker(ring_);
  EXPECT_EQ(pack(made, {}).front().kept_shards, 0);
  EXPECT_FALSE(fs::exists(folder_ / "half/shards/00000.h5"));
  EXPECT_EQ(fault_of(folder_ / "half", ring_), "");
  made.make_key = {};
  EXPECT_THAT(message_of<PolicyError>([&] { pack(made, {}); }), HasSubstr("but encrypted"));
  (void)pack_plain();
  PackOptions again = sealed_options("in", "plain");
  again.shard_bytes = 2'800'000;
  EXPECT_THAT(message_of<PolicyError>([&] { pack(again, {}); }), HasSubstr("but not encrypted"));
}

TEST_F(EncryptedDataset, NoKeyEncryptsTwoContents) {
  const auto key = std::make_shared<const DataKey>(DataKey::generate());
  const auto written = [&](std::int32_t last) {
    ShardFormat format;
    format.vocab = 257;
    ShardWriter writer(folder_, "shard", format, key);
    const std::vector<std::int32_t> tokens(100'000, 7);
    writer.append(tokens);
    writer.append({&last, 1});
    const ShardEntry entry = writer.finish();
    return std::pair(entry, read_file(folder_ / "shard"));
  };
  const auto [first, bytes] = written(1);
  const auto [second, others] = written(2);
  EXPECT_NE(first.salt, second.salt);
  ASSERT_EQ(bytes.size(), others.size());
  std::size_t same = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    same += bytes[i] == others[i] ? 1 : 0;
  }
  EXPECT_LT(same, bytes.size() / 100);  // 1 of 256 by chance
}

TEST_F(EncryptedDataset, VerifiesWithAndWithoutKey) {
  const fs::path folder = pack_sealed();
  DatasetManifest manifest = Dataset::open(folder).manifest();
  EXPECT_THAT(verify_shards(folder, manifest, 0, 1, {}).damage, IsEmpty());
  EXPECT_THAT(verify_shards(folder, manifest, 0, 1, {}).extras, IsEmpty());
  unlock(manifest, folder, ring_);
  const VerifyReport report = verify_shards(folder, manifest, 0, 1, {});
  EXPECT_THAT(report.damage, IsEmpty());
  EXPECT_EQ(report.bytes, manifest.bytes());
  flip_bit(folder / "shards/00001.h5.sealed", 1'500'000);
  for (const bool has_key : {false, true}) {
    manifest.key = has_key ? manifest.key : nullptr;
    EXPECT_THAT(verify_shards(folder, manifest, 0, 1, {}).damage,
                testing::ElementsAre(HasSubstr("block 1, bytes [1048576, 2097152)")));
  }
}

TEST_F(EncryptedDataset, ListsAndManifestsNeedNoKey) {
  const fs::path folder = pack_sealed();
  const std::vector<FoundDataset> found = list_datasets(folder_);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(found[0].manifest.has_value()) << found[0].problem;
  EXPECT_TRUE(found[0].manifest->is_encrypted());
  EXPECT_FALSE(found[0].manifest->is_open());
  const std::string text = read_manifest_text(folder);
  EXPECT_EQ(manifest_text(parse_dataset_manifest(text, "it")), text);
}

TEST_F(EncryptedDataset, StagedWithItsKeys) {
  const fs::path folder = pack_sealed();
  const fs::path to = folder_ / "node/copy";
  EXPECT_FALSE(stage(folder, to, {}).was_there);
  EXPECT_EQ(files_below(to), files_below(folder));
  EXPECT_EQ(fault_of(to, ring_), "");
  // The recipients change; the copy follows when it is staged again.
  const KeyRing next({new_key(folder_, "next")});
  const Dataset dataset = Dataset::open(folder, ring_);
  put(folder / "keys.json", to_text(next.wrap(*dataset.manifest().key, dataset.manifest().seal)));
  EXPECT_TRUE(stage(folder, to, {}).was_there);
  EXPECT_EQ(fault_of(to, next), "");
  EXPECT_THAT(fault_of(to, ring_), HasSubstr("is encrypted for file"));
  fs::remove(folder / "keys.json");
  EXPECT_THAT(message_of<DataError>([&] { stage(folder, folder_ / "another", {}); }),
              HasSubstr("keys.json is missing"));
  EXPECT_FALSE(fs::exists(folder_ / "another"));
}

class Recoded : public EncryptedDataTest {
 protected:
  RecodeReport run(const fs::path& folder, bool encrypts, const PackProgress& progress = {}) const {
    return recode({folder, encrypts, key_maker(ring_), progress}, {});
  }
  static std::vector<std::string> contents(const fs::path& folder) {
    std::vector<std::string> all;
    for (const fs::path& file : files_below(folder)) {
      all.push_back(file.string() + ":" + read_file(folder / file));
    }
    return all;
  }
};

TEST_F(Recoded, ThereAndBackGivesTheSameFiles) {
  const std::string digest = Dataset::open(pack_sealed(), ring_).manifest().digest();
  const fs::path folder = pack_plain();
  const std::vector<std::string> before = contents(folder);
  EXPECT_EQ(run(folder, true).digest, digest);
  EXPECT_EQ(fault_of(folder, ring_), "");
  EXPECT_THAT(files_below(folder),
              testing::ElementsAre("keys.json", "manifest.json", "shards/00000.h5.sealed",
                                   "shards/00001.h5.sealed"));
  const DatasetManifest sealed = Dataset::open(folder, ring_).manifest();
  EXPECT_THAT(verify_shards(folder, sealed, 0, 1, {}).damage, IsEmpty());
  EXPECT_TRUE(run(folder, true).was_done);
  EXPECT_EQ(run(folder, false).digest, digest);
  EXPECT_EQ(contents(folder), before);
  EXPECT_TRUE(run(folder, false).was_done);
}

TEST_F(Recoded, OnSeveralRanks) {
  (void)pack_sealed();
  const fs::path folder = pack_plain();
  for (const bool encrypts : {true, false}) {
    run_ranks(3, [&](const RankGroup& ranks) {
      EXPECT_FALSE(recode({folder, encrypts, key_maker(ring_, ranks)}, ranks).was_done);
    });
    EXPECT_EQ(fault_of(folder, ring_), "");
    EXPECT_EQ(Dataset::open(folder).manifest().is_encrypted(), encrypts);
  }
}

TEST_F(Recoded, AnInterruptionLeavesAWholeDataset) {
  (void)pack_sealed();
  for (const bool encrypts : {true, false}) {
    const fs::path folder = encrypts ? pack_plain() : folder_ / "plain";
    const std::int64_t total = Dataset::open(folder).manifest().bytes();
    for (const std::int64_t stop : {total / 4, 3 * total / 4, total}) {
      const auto interrupt = [&](std::int64_t done, std::int64_t) {
        if (done >= stop) {
          throw IoError("the disk is full");
        }
      };
      EXPECT_THROW(run(folder, encrypts, interrupt), IoError);
      EXPECT_EQ(Dataset::open(folder).manifest().is_encrypted(), !encrypts);
      EXPECT_EQ(fault_of(folder, ring_), "");
    }
    EXPECT_FALSE(run(folder, encrypts).was_done);
    EXPECT_EQ(fault_of(folder, ring_), "");
    EXPECT_EQ(files_below(folder).size(), encrypts ? 4U : 3U);
  }
}

// The process is killed after the manifest was replaced, before the old shards are removed.
TEST_F(Recoded, PlainShardsThatWereLeftAreRemoved) {
  (void)pack_sealed();
  const fs::path folder = pack_plain();
  fs::copy(folder, folder_ / "before", fs::copy_options::recursive);
  run(folder, true);
  fs::copy_file(folder_ / "before/shards/00001.h5", folder / "shards/00001.h5");
  put(folder / "shards/00000.h5.tmp", "a part");
  EXPECT_EQ(verify_shards(folder, Dataset::open(folder).manifest(), 0, 1, {}).extras.size(), 2U);
  EXPECT_TRUE(run(folder, true).was_done);
  EXPECT_EQ(files_below(folder).size(), 4U);
}

TEST_F(Recoded, Refusals) {
  const fs::path sealed = pack_sealed();
  const fs::path folder = pack_plain();
  put(folder / "provenance.intoto.jsonl", "signed");
  EXPECT_THAT(message_of<PolicyError>([&] { run(folder, true); }), HasSubstr("is signed"));
  fs::remove(folder / "provenance.intoto.jsonl");
  flip_bit(folder / "shards/00001.h5", 1'500'000);
  const std::vector<std::string> before = contents(folder);
  EXPECT_THAT(message_of<DataError>([&] { run(folder, true); }), HasSubstr("block 1, bytes"));
  EXPECT_EQ(contents(folder), before);
  flip_bit(sealed / "shards/00001.h5.sealed", 1'500'000);
  EXPECT_THAT(message_of<DataError>([&] { run(sealed, false); }), HasSubstr("block 1, bytes"));
  EXPECT_TRUE(Dataset::open(sealed).manifest().is_encrypted());
  const KeyRing other({new_key(folder_, "other")});
  EXPECT_THAT(message_of<PolicyError>([&] {
                recode({sealed, false, key_maker(other)}, {});
              }),
              HasSubstr("is encrypted for file"));
}

}  // namespace
}  // namespace trireme
