// Finding the documents of a range of tokens, and tables of documents that are wrong although all
// digests are right.
#include "io/data/document_index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/block_digests.h"
#include "io/data/loader.h"
#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using Offsets = std::vector<std::int64_t>;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DocumentIndexTest : public DataTest {
 protected:
  // Packs documents of these numbers of bytes, each of which gets a token more at its end.
  fs::path pack_lengths(const Offsets& lengths, std::int64_t shard_bytes = 1 << 20) {
    std::string lines;
    for (const std::int64_t length : lengths) {
      lines +=
          fmt::format("{{\"text\": \"{}\"}}\n", std::string(static_cast<std::size_t>(length), 'a'));
    }
    write("in.jsonl", lines);
    PackOptions o = options("in.jsonl", "data");
    o.shard_bytes = shard_bytes;
    pack(o, {});
    return o.out;
  }
  // Overwrites the offsets of the first shard, as a program does that also writes right digests.
  static void overwrite(const fs::path& folder, const std::vector<std::uint64_t>& offsets) {
    DatasetManifest manifest = Dataset::open(folder).manifest();
    ShardEntry& entry = manifest.shards.front();
    const fs::path path = folder / entry.path;
    fs::permissions(path, fs::perms::owner_all);
    ASSERT_EQ(std::ssize(offsets), entry.n_docs + 1);
    File::open_to_update(path).write_at(entry.docs_offset, offsets.data(), entry.docs_bytes);
    const FileDigests digests = digest_file(File::open_to_read(path));
    entry.xxh3 = digests.whole;
    entry.blocks = digests.blocks;
    write_file_durably(folder / kDatasetManifestName, manifest_text(manifest));
  }
  static Offsets ends(const Dataset& dataset, const TokenRun& run) {
    Offsets found = {-1};  // is replaced
    std::vector<std::byte> scratch;
    dataset.document_ends(run, found, scratch);
    return found;
  }
};

TEST_F(DocumentIndexTest, FindsTheEndsWithinARange) {
  const Dataset dataset = Dataset::open(pack_lengths({4, 0, 1, 9}));
  // The text without a byte is no document.
  EXPECT_EQ(dataset.document_offsets(0), (Offsets{0, 5, 7, 17}));
  EXPECT_THAT(ends(dataset, {0, 0, 17}), ElementsAre(5, 7, 17));
  EXPECT_THAT(ends(dataset, {0, 0, 4}), IsEmpty());
  EXPECT_THAT(ends(dataset, {0, 0, 5}), ElementsAre(5)) << "a document ends with the range";
  EXPECT_THAT(ends(dataset, {0, 5, 6}), ElementsAre(7)) << "one ends where the range begins";
  EXPECT_THAT(ends(dataset, {0, 6, 1}), ElementsAre(7));
  EXPECT_THAT(ends(dataset, {0, 7, 0}), IsEmpty());
  EXPECT_THAT(ends(dataset, {0, 16, 1}), ElementsAre(17));
}

// There are so many documents that several of their offsets are kept.
TEST_F(DocumentIndexTest, EqualsASearchThroughAllOffsets) {
  Offsets lengths;
  for (int i = 0; i < 20'000; ++i) {
    lengths.push_back(1 + static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(i)) % 7));
  }
  const Dataset dataset = Dataset::open(pack_lengths(lengths, 1 << 16));
  const std::size_t shards = dataset.manifest().shards.size();
  ASSERT_GE(shards, 2U);
  const auto compare = [&](std::size_t shard) {
    const std::int64_t tokens = dataset.manifest().shards[shard].n_tokens;
    const Offsets all = dataset.document_offsets(shard);
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto first = static_cast<std::int64_t>(mix64(i) % static_cast<std::uint64_t>(tokens));
      const std::int64_t count =
          std::min<std::int64_t>(tokens - first, i % 3 == 0 ? 4000 : static_cast<int>(i % 20));
      const auto begin = std::ranges::upper_bound(all, first);
      EXPECT_EQ(ends(dataset, {shard, first, count}),
                Offsets(begin, std::ranges::upper_bound(all, first + count)));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2 * shards; ++i) {
    threads.emplace_back([&, i] { compare(i % shards); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(DocumentIndexTest, SkipsEmptyDocuments) {
  const fs::path folder = pack_lengths({4, 4, 4, 4});
  overwrite(folder, {0, 0, 10, 10, 20});
  EXPECT_THAT(ends(Dataset::open(folder), {0, 0, 20}), ElementsAre(10, 20));
  EXPECT_THAT(ends(Dataset::open(folder), {0, 10, 5}), IsEmpty());
}

TEST_F(DocumentIndexTest, RefusesWrongTables) {
  const fs::path folder = pack_lengths({4, 4, 4, 4});
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  for (const std::vector<std::uint64_t>& wrong : {std::vector<std::uint64_t>{0, 10, 5, 15, 20},
                                                  {0, 5, 10, 15, 21},
                                                  {0, 5, 10, 15, 19},
                                                  {0, 5, 25, 30, 20},
                                                  {0, 5, 10, kLargest, 20},
                                                  {0, 5, 10, kLargest / 2, 20},
                                                  {kLargest, 5, 10, 15, 20},
                                                  {1, 5, 10, 15, 20},
                                                  {0, 0, 0, 0, 0}}) {
    overwrite(folder, wrong);
    const Dataset dataset = Dataset::open(folder);
    const auto named = AllOf(HasSubstr("00000.h5"), HasSubstr("do not ascend"), HasSubstr("20"));
    EXPECT_THAT(message_of<DataError>([&] { (void)dataset.document_offsets(0); }), named);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(message_of<DataError>([&] { ends(dataset, {0, 3, 2}); }), named) << i;
    }
    Loader loader(dataset, Sampler(dataset.samples(6), 1, Shuffle::none, 1),
                  {.sequence = 6,
                   .batches = 1,
                   .micro_batch = 1,
                   .micros = [](std::int64_t) { return std::vector<std::int64_t>{0}; },
                   .steps = 2,
                   .separates_documents = true},
                  0);
    EXPECT_THAT(message_of<DataError>([&] { (void)loader.next(); }), named);
  }
}

TEST_F(DocumentIndexTest, FindsDamage) {
  const fs::path folder = pack_lengths({4, 4, 4, 4});
  const ShardEntry entry = Dataset::open(folder).manifest().shards.front();
  flip_bit(folder / entry.path, entry.docs_offset + 9);
  const Dataset dataset = Dataset::open(folder);
  EXPECT_THAT(message_of<DataError>([&] { ends(dataset, {0, 3, 2}); }), HasSubstr("XXH3"));
}

}  // namespace
}  // namespace trireme
