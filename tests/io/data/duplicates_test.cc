#include "io/data/duplicates.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/tokenizer.h"
#include "tests/io/archive/make_archives.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;

std::array<DocumentKey, kKeyBands> near_keys(std::string_view text) {
  MinHash hash;
  hash.add(text);
  return hash.finish();
}

std::int64_t shared_keys(std::string_view a, std::string_view b) {
  const auto first = near_keys(a);
  const auto second = near_keys(b);
  std::int64_t shared = 0;
  for (std::size_t band = 0; band < kKeyBands; ++band) {
    shared += first.at(band) == second.at(band) ? 1 : 0;
  }
  return shared;
}

// A text of `count` words, of which those with the given numbers are of another text.
std::string words_text(std::uint64_t seed, int count, int changed_from, int changed_to) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const bool is_changed = i >= changed_from && i < changed_to;
    text += fmt::format("w{} ", mix64(seed * 10'000 + static_cast<std::uint64_t>(i) +
                                      (is_changed ? 5'000'000 : 0)) %
                                    100'000);
  }
  return text;
}

TEST(MinHash, TakesWordsAndNotHowTheyAreWritten) {
  const std::string text = "The ship sails under oars, along the coast of the sea.";
  EXPECT_EQ(shared_keys(text, "the  SHIP sails\nunder oars along the coast (of the sea)"), 14);
  EXPECT_EQ(shared_keys(text, "along the coast of the sea the ship sails under sails"), 0);
  EXPECT_EQ(shared_keys("two words", "two  words!"), 14);
  EXPECT_EQ(shared_keys("two words", "two other"), 0);
  EXPECT_EQ(shared_keys("", "..."), 14) << "texts without words";
  EXPECT_EQ(shared_keys("r\xC3\xA9sum\xC3\xA9", "r\xC3\xA9sum"), 0);
  MinHash parts;
  parts.add("The ship sails under ");
  parts.add("oars, along the coast of the sea.");
  EXPECT_EQ(parts.finish(), near_keys(text));
  EXPECT_EQ(parts.finish(), near_keys("")) << "the next document begins anew";
}

TEST(MinHash, TakesCharactersOfScriptsWithoutSpaces) {
  // Two sentences of Han characters that differ in the last of fourteen.
  const std::string han =
      "\xE4\xB8\x80\xE4\xBA\x8C\xE4\xB8\x89\xE5\x9B\x9B\xE4\xBA\x94\xE5\x85\xAD"
      "\xE4\xB8\x83\xE5\x85\xAB\xE4\xB9\x9D\xE5\x8D\x81";
  std::string many;
  for (int i = 0; i < 12; ++i) {
    many += han.substr(static_cast<std::size_t>(3 * (i % 7)), 15);
  }
  EXPECT_GT(shared_keys(many + han, many + han.substr(0, 27)), 5);
  EXPECT_EQ(shared_keys(many, han), 0);
}

TEST(MinHash, FindsTextsByTheirSimilarity) {
  // n words have n - 4 shingles. Changing m of them leaves n - m - 8 in common, so that the Jaccard
  // similarity is (n - m - 8) / (n - 4 + m + 4).
  int near = 0;
  int middle = 0;
  int far = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string text = words_text(seed, 400, 0, 0);
    near += shared_keys(text, words_text(seed, 400, 100, 116)) > 0 ? 1 : 0;    // s = 0.90
    middle += shared_keys(text, words_text(seed, 400, 100, 160)) > 0 ? 1 : 0;  // s = 0.72
    far += shared_keys(text, words_text(seed, 400, 100, 270)) > 0 ? 1 : 0;     // s = 0.39
  }
  EXPECT_GE(near, 39);
  EXPECT_GE(middle, 16);
  EXPECT_LE(middle, 39);
  EXPECT_LE(far, 2);
}

TEST(FindRepeated, GivesTheSameOnAnyNumberOfRanks) {
  std::vector<KeyedDocument> all;
  std::vector<DocumentPlace> wanted;
  for (std::int64_t i = 0; i < 3000; ++i) {
    const std::uint64_t key = mix64(static_cast<std::uint64_t>(i)) % 2000;
    const auto before = std::ranges::count_if(all, [&](const auto& d) { return d.key.low == key; });
    if (before > 0) {
      wanted.push_back({i / 100, i % 100});
    }
    all.push_back({{1, key}, {i / 100, i % 100}});
  }
  ASSERT_GT(wanted.size(), 500U);
  for (const int size : {1, 2, 5}) {
    run_ranks(size, [&](const RankGroup& ranks) {
      std::vector<KeyedDocument> mine;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (mix64(i) % static_cast<std::size_t>(size) == static_cast<std::size_t>(ranks.rank)) {
          mine.push_back(all[i]);
        }
      }
      EXPECT_EQ(find_repeated(std::move(mine), ranks), wanted);
    });
  }
  EXPECT_TRUE(find_repeated({}, {}).empty());
}

class DeduplicationTest : public DataTest {
 protected:
  static std::vector<std::string> documents(const fs::path& folder) {
    std::vector<std::string> texts(1);
    for (const std::int32_t token : all_tokens(Dataset::open(folder))) {
      if (token == 256) {
        texts.emplace_back();
      } else {
        texts.back() += static_cast<char>(token);
      }
    }
    texts.pop_back();
    return texts;
  }
};

TEST_F(DeduplicationTest, TheFirstOfEqualDocumentsStays) {
  write("in/a.txt", "one");
  write("in/b.jsonl", "{\"text\": \"two\"}\n{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  write("in/c.jsonl.gz", gzip_of("{\"text\": \"two\"}\n{\"text\": \"three\"}\n"));
  write("in/d.tar", tar_member("1.txt", "three") + tar_member("2.json", "{\"text\": \"four\"}") +
                        tar_member("3.jsonl", "{\"text\": \"four\"}\n{\"text\": \"One\"}") +
                        kTarEnd);
  write("in/e.txt", "one");
  PackOptions o = options("in", "out");
  o.deduplication = Deduplication::exact;
  const PackReport report = pack(o, {}).front();
  EXPECT_THAT(documents(o.out), ElementsAre("one", "two", "three", "four", "One"));
  EXPECT_EQ(report.counts.duplicates, 6);
  EXPECT_EQ(report.counts.files, 5);
  o.out = folder_ / "near";
  o.deduplication = Deduplication::minhash;
  EXPECT_EQ(pack(o, {}).front().counts.duplicates, 7) << "case does not count";
  EXPECT_THAT(documents(o.out), ElementsAre("one", "two", "three", "four"));
}

TEST_F(DeduplicationTest, TheResultDependsNeitherOnRanksNorOnShards) {
  std::string lines;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::string text = words_text(i % 200, 100, 50, 50 + static_cast<int>(i / 200));
    if (i % 3 == 0) {
      write(fmt::format("in/{:03}.txt", i), text);
    } else {
      lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
    }
  }
  write("in/lines.jsonl", lines);
  for (const Deduplication kind : {Deduplication::exact, Deduplication::minhash}) {
    std::vector<std::string> first;
    for (const auto& [ranks, shard_bytes] : {std::pair{1, 1 << 30}, {1, 1 << 16}, {3, 1 << 17}}) {
      PackOptions o =
          options("in", fmt::format("out{}{}{}", static_cast<int>(kind), ranks, shard_bytes));
      o.deduplication = kind;
      o.shard_bytes = shard_bytes;
      run_ranks(ranks, [&](const RankGroup& group) { pack(o, group); });
      const std::vector<std::string> found = documents(o.out);
      EXPECT_TRUE(first.empty() || found == first);
      first = found;
    }
    // Each text has two variants, with one and two other words of a hundred.
    EXPECT_EQ(first.size(), kind == Deduplication::exact ? 600 : first.size());
    EXPECT_LE(first.size(), kind == Deduplication::exact ? 600 : 240);
    EXPECT_GE(first.size(), 200U);
  }
}

TEST_F(DeduplicationTest, NoDocumentIsOnBothSidesOfASplit) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) {
    lines += fmt::format("{{\"text\": \"document {}\"}}\n", i % 250);
  }
  write("in.jsonl", lines);
  PackOptions o = options("in.jsonl", "out");
  o.deduplication = Deduplication::exact;
  o.validation_fraction = 0.3;
  const auto reports = pack(o, {});
  EXPECT_EQ(reports[0].counts.duplicates + reports[1].counts.duplicates, 750);
  std::vector<std::string> all = documents(o.out / "train");
  const std::vector<std::string> others = documents(o.out / "validation");
  EXPECT_GT(others.size(), 30U);
  all.insert(all.end(), others.begin(), others.end());
  std::ranges::sort(all);
  EXPECT_EQ(all.size(), 250U);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST_F(DeduplicationTest, AnotherKindIsAnotherDataset) {
  write("in/a.txt", "one");
  write("in/b.txt", "one");
  PackOptions o = options("in", "out");
  pack(o, {});
  o.deduplication = Deduplication::exact;
  EXPECT_THROW(pack(o, {}), PolicyError);
  o.out = folder_ / "other";
  EXPECT_EQ(pack(o, {}).front().n_docs, 1);
  EXPECT_TRUE(pack(o, {}).front().was_complete);
}

}  // namespace
}  // namespace trireme
