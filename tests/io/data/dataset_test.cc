#include "io/data/dataset.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/block_digests.h"
#include "io/data/stage.h"
#include "io/data/tokenizer.h"
#include "io/data/unigram_entropy.h"
#include "io/data/verify.h"
#include "io/data/widen_tokens.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DatasetTest : public DataTest {
 protected:
  // Makes two shards of about 2.2 MiB, which have several digest blocks each.
  fs::path pack_two_shards() {
    write_random_text("in/a.txt", 1'100'000, 1);
    write_random_text("in/b.txt", 1'150'000, 2);
    PackOptions o = options("in", "data");
    o.shard_bytes = 2'400'000;
    EXPECT_EQ(pack(o, {}).front().shards, 2);
    return o.out;
  }
  static VerifyReport verify(const fs::path& folder) {
    return verify_shards(
        folder, parse_dataset_manifest(read_manifest_text(folder), "manifest.json"), 0, 1, {});
  }
};

TEST_F(DatasetTest, SamplesAreConsecutiveTokensOfOneShard) {
  const Dataset dataset = Dataset::open(pack_two_shards());
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  for (const std::int64_t sequence : {1, 7, 1024, 1'100'000}) {
    const SampleIndex index(dataset.manifest(), sequence);
    std::int64_t sample = 0;
    std::int64_t shard_start = 0;
    for (const ShardEntry& shard : dataset.manifest().shards) {
      const std::int64_t in_shard = (shard.n_tokens - 1) / sequence;
      for (std::int64_t i = 0; i < in_shard; i += std::max<std::int64_t>(in_shard / 5, 1)) {
        std::vector<std::byte> scratch;
        std::vector<std::int32_t> read(static_cast<std::size_t>(sequence + 1));
        dataset.read(index.locate(sample + i), read, scratch);
        const auto* at = tokens.data() + shard_start + i * sequence;
        ASSERT_TRUE(std::equal(read.begin(), read.end(), at)) << sequence << " " << i;
      }
      sample += in_shard;
      shard_start += shard.n_tokens;
    }
    EXPECT_EQ(index.samples(), sample);
    EXPECT_EQ(dataset.samples(sequence), sample);
  }
}

TEST_F(DatasetTest, ASequenceThatIsTooLongIsRefusedWithWhatIsPossible) {
  write("in/a.txt", "0123456789");
  const PackOptions o = options("in", "data");
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  EXPECT_EQ(dataset.samples(10), 1);
  EXPECT_THAT(message_of<DataError>([&] { (void)dataset.samples(11); }),
              HasSubstr("a sequence of 10"));
  EXPECT_THROW((void)dataset.samples(0), ConfigError);
}

// Flips one bit in every region of a shard: superblock, headers, offsets, padding, tokens and the
// last byte.
TEST_F(DatasetTest, EveryFlipIsFoundAndNamedAndNeverUsed) {
  const fs::path folder = pack_two_shards();
  const ShardEntry entry = Dataset::open(folder).manifest().shards[1];
  const fs::path path = folder / entry.path;
  std::vector<std::int64_t> places = {0,
                                      1,
                                      9,
                                      50,
                                      100,
                                      400,
                                      800,
                                      1500,
                                      2000,
                                      entry.docs_offset,
                                      entry.docs_offset + entry.docs_bytes - 1,
                                      entry.data_offset - 1,
                                      entry.data_offset,
                                      entry.data_offset + 1'000'001,
                                      entry.data_offset + entry.data_bytes - 1,
                                      entry.bytes - 1};
  for (std::int64_t at = 4000; at < entry.bytes; at += 99'991) {
    places.push_back(at);
  }
  std::vector<std::byte> scratch;
  for (const std::int64_t at : places) {
    flip_bit(path, at);
    const std::int64_t block = at / kBlockBytes;
    const auto named = AllOf(HasSubstr(path.string()), HasSubstr(fmt::format("block {},", block)),
                             HasSubstr("expected"), HasSubstr("found"));
    EXPECT_THAT(verify(folder).damage, testing::ElementsAre(named)) << at;
    // A reader of tokens in that block never sees the damage.
    const Dataset dataset = Dataset::open(folder);
    const std::int64_t token =
        std::clamp<std::int64_t>((at - entry.data_offset) / 2, 0, entry.n_tokens - 1);
    EXPECT_THAT(message_of<DataError>([&] {
                  std::vector<std::int32_t> to(1);
                  dataset.read({1, token, 1}, to, scratch);
                }),
                named)
        << at;
    flip_bit(path, at);
  }
  EXPECT_THAT(verify(folder).damage, IsEmpty());
}

TEST_F(DatasetTest, DamagedHeadersCloseTheWholeShard) {
  const fs::path folder = pack_two_shards();
  flip_bit(folder / "shards/00000.h5", 100);
  const Dataset dataset = Dataset::open(folder);
  std::vector<std::byte> scratch;
  std::vector<std::int32_t> to(10);
  // These tokens are far behind the damaged header.
  EXPECT_THROW(dataset.read({0, 1'000'000, 10}, to, scratch), DataError);
  dataset.read({1, 1'000'000, 10}, to, scratch);
}

// Returns once a file that changes now gets another time than this one has.
void wait_for_another_time(const fs::path& path) {
  const fs::path probe = path.string() + ".probe";
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ofstream(probe) << "now";
  } while (fs::last_write_time(probe) <= fs::last_write_time(path));
  fs::remove(probe);
}

// The tokens are in block 1, which has been verified before the file changes.
TEST_F(DatasetTest, AChangeAfterABlockWasVerifiedIsFound) {
  const fs::path folder = pack_two_shards();
  const fs::path path = folder / "shards/00000.h5";
  const fs::path original = folder_ / "original.h5";
  fs::copy_file(path, original);
  fs::permissions(path, fs::perms::owner_all);
  const TokenRun run = {0, 700'000, 100};
  std::vector<std::byte> scratch;
  std::vector<std::int32_t> expected(100);
  Dataset::open(folder).read(run, expected, scratch);
  const std::int64_t at = Dataset::open(folder).manifest().shards[0].data_offset + 2 * 700'050;
  const auto keep_time = [&](const std::function<void()>& change) {
    const fs::file_time_type time = fs::last_write_time(path);
    change();
    fs::last_write_time(path, time);
  };
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"block 1,", [&] { flip_bit(path, at); }},
      {"block 1,", [&] { keep_time([&] { flip_bit(path, at); }); }},
      {"block 1,",
       [&] { fs::resize_file(path, 4096), fs::resize_file(path, fs::file_size(original)); }},
      {"00000.h5", [&] { fs::resize_file(path, 4096); }},
      {"not the one that was packed", [&] { fs::resize_file(path, 1 << 23); }}};
  for (const auto& [named, change] : changes) {
    const Dataset dataset = Dataset::open(folder);
    std::vector<std::int32_t> to(100);
    wait_for_another_time(path);
    dataset.read(run, to, scratch);
    EXPECT_EQ(to, expected);
    change();
    const auto read = [&] { dataset.read(run, to, scratch); };
    EXPECT_THAT(message_of<DataError>(read), AllOf(HasSubstr(path.string()), HasSubstr(named)));
    EXPECT_THAT(message_of<DataError>(read), HasSubstr(path.string())) << "the second time";
    fs::copy_file(original, path, fs::copy_options::overwrite_existing);
    read();  // the file is as it was packed
    EXPECT_EQ(to, expected);
  }
}

TEST_F(DatasetTest, ReadersGoOnWhileAFileIsTouched) {
  const fs::path folder = pack_two_shards();
  const Dataset dataset = Dataset::open(folder);
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> reads = 0;
  std::vector<std::thread> readers;
  for (std::int64_t r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      std::vector<std::byte> scratch;
      std::vector<std::int32_t> to(64);
      for (std::int64_t i = r; !stop; ++i) {
        const std::int64_t first = i * 7919 % 1'000'000;
        dataset.read({0, first, 64}, to, scratch);
        EXPECT_TRUE(std::equal(to.begin(), to.end(), tokens.begin() + first));
        ++reads;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    fs::last_write_time(folder / "shards/00000.h5", fs::file_time_type::clock::now());
    for (const std::int64_t next = reads + 10; reads < next;) {
      std::this_thread::yield();
    }
  }
  stop = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
}

TEST_F(DatasetTest, EveryFlipInTheManifestIsFound) {
  write("in/a.txt", "text");
  const PackOptions o = options("in", "data");
  pack(o, {});
  const std::int64_t bytes = File::open_to_read(o.out / "manifest.json").size();
  for (std::int64_t at = 0; at < bytes; ++at) {
    flip_bit(o.out / "manifest.json", at);
    EXPECT_THAT(message_of<DataError>([&] { Dataset::open(o.out); }), HasSubstr("manifest.json"));
    flip_bit(o.out / "manifest.json", at);
  }
  Dataset::open(o.out);
}

TEST_F(DatasetTest, MissingTruncatedLongerAndExtraFilesAreNamed) {
  const fs::path folder = pack_two_shards();
  const fs::path shard = folder / "shards/00001.h5";
  const auto bytes = static_cast<std::int64_t>(fs::file_size(shard));
  const auto expect_damage = [&](const char* word) {
    const auto named = AllOf(HasSubstr("00001.h5"), HasSubstr(word));
    EXPECT_THAT(message_of<DataError>([&] { Dataset::open(folder); }), named);
    EXPECT_THAT(verify(folder).damage, testing::ElementsAre(named));
    // The other ranks do not check files before they read them.
    const Dataset dataset(folder, read_manifest_text(folder));
    std::vector<std::byte> scratch;
    EXPECT_THAT(message_of<DataError>([&] { (void)dataset.read({1, 0, 5}, scratch); }), named);
  };
  fs::resize_file(shard, static_cast<std::uintmax_t>(bytes) + 1);
  expect_damage("not the one that was packed");
  fs::resize_file(shard, static_cast<std::uintmax_t>(bytes) - 1);
  expect_damage("truncated");
  fs::remove(shard);
  expect_damage("missing");
  write("data/shards/00007.h5", "stray");
  EXPECT_THAT(verify(folder).extras, testing::ElementsAre(HasSubstr("00007.h5")));
}

TEST_F(DatasetTest, ATokenOutsideTheVocabularyIsNamed) {
  write("in/a.txt", "aabc");
  const PackOptions o = options("in", "data");
  pack(o, {});
  // Simulates a program that wrote only the vocabulary wrongly.
  DatasetManifest manifest = Dataset::open(o.out).manifest();
  manifest.vocab = 99;
  std::ofstream(o.out / "manifest.json", std::ios::binary) << manifest_text(manifest);
  const Dataset dataset = Dataset::open(o.out);
  std::vector<std::byte> scratch;
  std::vector<std::int32_t> to(3);
  dataset.read({0, 0, 3}, to, scratch);
  to.resize(4);
  EXPECT_THAT(message_of<DataError>([&] {
                dataset.read({0, 0, 4}, to, scratch);
              }),
              AllOf(HasSubstr("token 3"), HasSubstr("is 99"), HasSubstr("vocabulary of 99")));
  EXPECT_THAT(verify(o.out).damage, SizeIs(1));
}

// This test is for TSan.
TEST_F(DatasetTest, ManyThreadsReadAtOnce) {
  const Dataset dataset = Dataset::open(pack_two_shards());
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  const Dataset fresh = Dataset::open(dataset.folder());
  const SampleIndex index(fresh.manifest(), 1000);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> scratch;
      std::vector<std::int32_t> to(1001);
      for (std::int64_t i = t; i < index.samples(); i += 3) {
        const TokenRun run = index.locate(i);
        fresh.read(run, to, scratch);
        const std::int64_t before = run.shard == 0 ? 0 : fresh.manifest().shards[0].n_tokens;
        wrong += std::equal(to.begin(), to.end(), tokens.begin() + before + run.first) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(WidenTokensTest, WidensEveryValueAtEveryLength) {
  for (const int width : {2, 4}) {
    for (std::int64_t count = 0; count < 70; ++count) {
      std::vector<std::byte> raw(static_cast<std::size_t>(count * width));
      std::uint32_t largest = 0;
      std::vector<std::int32_t> expected;
      for (std::int64_t i = 0; i < count; ++i) {
        auto value = static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(i * 71 + count)));
        value = width == 2 ? value & 0xFFFF : value;
        std::memcpy(raw.data() + i * width, &value, static_cast<std::size_t>(width));
        largest = std::max(largest, value);
        expected.push_back(static_cast<std::int32_t>(value));
      }
      std::vector<std::int32_t> to(static_cast<std::size_t>(count));
      EXPECT_EQ(widen_tokens(raw.data(), width, count, to.data()), largest);
      EXPECT_EQ(to, expected);
    }
  }
}

TEST_F(DatasetTest, StagingCopiesWholeOrNotAtAll) {
  const fs::path folder = pack_two_shards();
  const fs::path to = folder_ / "node/local/copy";
  const StageReport report = stage(folder, to, {});
  EXPECT_FALSE(report.was_there);
  EXPECT_THAT(verify(to).damage, IsEmpty());
  EXPECT_EQ(read_file(to / "manifest.json"), read_file(folder / "manifest.json"));
  EXPECT_TRUE(stage(folder, to.string() + "/", {}).was_there);
  // Another dataset in the same place is left alone.
  write("in2/a.txt", "other");
  pack(options("in2", "data2"), {});
  EXPECT_THROW(stage(folder_ / "data2", to, {}), PolicyError);
  // Damage found while copying is named, and the target folder does not appear.
  flip_bit(folder / "shards/00001.h5", 1'500'000);
  const fs::path other = folder_ / "node/other";
  EXPECT_THAT(message_of<DataError>([&] { stage(folder, other, {}); }), HasSubstr("block 1,"));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_FALSE(fs::exists(other.string() + ".staging"));
}

TEST_F(DatasetTest, ManyProcessesStageOnce) {
  const fs::path folder = pack_two_shards();
  std::atomic<int> copies = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { copies += stage(folder, folder_ / "copy", {}).was_there ? 0 : 1; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(copies, 1);
}

TEST_F(DatasetTest, EntropyIsThatOfTheCounts) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "abcd";
  }
  write("in/a.txt", text);
  const PackOptions o = options("in", "data");
  pack(o, {});
  const auto counts = count_tokens(Dataset::open(o.out), 1 << 20);
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->tokens, 4001);
  const double p = 1000.0 / 4001;
  const double end = 1.0 / 4001;
  EXPECT_NEAR(unigram_entropy(*counts), -4 * p * std::log(p) - end * std::log(end), 1e-12);
}

TEST(TokenizerTest, BytesComeBack) {
  const auto tokenizer = make_tokenizer("bytes");
  std::string text;
  for (int c = 0; c < 256; ++c) {
    text.push_back(static_cast<char>(c));
  }
  std::vector<std::int32_t> ids;
  tokenizer->encode(text, ids);
  EXPECT_EQ(ids[200], 200);
  ids.push_back(tokenizer->end_of_document());
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(tokenizer->vocab(), 257);
  EXPECT_THROW(tokenizer->decode(std::vector<std::int32_t>{257}), DataError);
  EXPECT_THROW(tokenizer->decode(std::vector<std::int32_t>{-1}), DataError);
  EXPECT_THROW(make_tokenizer("gpt2"), ConfigError);
}

}  // namespace
}  // namespace trireme
