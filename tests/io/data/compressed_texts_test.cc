// Tests the packing of compressed texts and of archives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/tokenizer.h"
#include "io/data/verify.h"
#include "src/base/error.h"
#include "tests/io/archive/make_archives.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CompressedTextsTest : public DataTest {
 protected:
  PackReport packed(const std::string& in, const std::string& out) const {
    return pack(options(in, out), {}).front();
  }
  std::string refusal_of(const std::string& in) const {
    const std::string words = message_of<DataError>([&] { pack(options(in, "refused"), {}); });
    EXPECT_FALSE(fs::exists(folder_ / "refused")) << in << ": nothing is left";
    return words;
  }
  // Returns the documents of a dataset of bytes; its last ones may not end with a token.
  std::vector<std::string> documents(const std::string& out) const {
    std::vector<std::string> texts(1);
    for (const std::int32_t token : all_tokens(Dataset::open(folder_ / out))) {
      if (token == 256) {
        texts.emplace_back();
      } else {
        texts.back() += static_cast<char>(token);
      }
    }
    texts.pop_back();
    return texts;
  }
  static std::string lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("{{\"text\": \"document {} {}\"}}\n", i, std::string(i % 50, 'x'));
    }
    return text;
  }
};

TEST_F(CompressedTextsTest, CompressionChangesNoDocument) {
  const std::string text = "a text\nof two lines\n";
  write("plain/a.txt", text);
  write("plain/b.jsonl", lines(3000));
  write("packed/a.txt.gz", gzip_of(text));
  write("packed/b.jsonl.zst", zstd_of(lines(3000)));
  for (const double fraction : {0.0, 0.3}) {
    SCOPED_TRACE(fraction);
    std::vector<std::vector<PackReport>> reports;
    for (const char* in : {"plain", "packed"}) {
      PackOptions o = options(in, fmt::format("out-{}-{}", in, fraction));
      o.validation_fraction = fraction;
      reports.push_back(pack(o, {}));
    }
    ASSERT_EQ(reports[0].size(), fraction == 0 ? 1U : 2U);
    for (std::size_t i = 0; i < reports[0].size(); ++i) {
      EXPECT_EQ(reports[0][i].digest, reports[1][i].digest);
      EXPECT_GT(reports[1][i].n_docs, 700);
    }
  }
}

TEST_F(CompressedTextsTest, TheResultDoesNotDependOnRanks) {
  for (int i = 0; i < 9; ++i) {
    write(fmt::format("in/{}.jsonl.gz", i), gzip_of(lines(1500 + i)));
    write(fmt::format("in/{}.tar", i), tar_member("a.txt", std::string(30'000, 'a')) +
                                           tar_member("b.jsonl", lines(i)) + kTarEnd);
  }
  std::string digest;
  for (const int ranks : {1, 2, 5}) {
    PackOptions o = options("in", fmt::format("out{}", ranks));
    o.shard_bytes = 1 << 17;
    std::vector<std::int64_t> done(static_cast<std::size_t>(ranks));
    std::vector<std::int64_t> total(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](const RankGroup& group) {
      PackOptions mine = o;
      const auto rank = static_cast<std::size_t>(group.rank);
      mine.progress = [&, rank](std::int64_t is_done, std::int64_t is_total) {
        EXPECT_GE(is_done, done[rank]);
        EXPECT_LE(is_done, is_total);
        done[rank] = is_done;
        total[rank] = is_total;
      };
      const PackReport report = pack(mine, group).front();
      EXPECT_GT(report.shards, 4);
      EXPECT_EQ(report.counts.files, 18);
      EXPECT_TRUE(digest.empty() || digest == report.digest);
      EXPECT_EQ(done[rank], total[rank]) << "bytes of the files, compressed as they are";
    });
    digest = Dataset::open(o.out).manifest().digest();
  }
}

TEST_F(CompressedTextsTest, MembersOfArchivesAreDocuments) {
  write("a.tar.zst",
        zstd_of(tar_member("x/", "", '5') + tar_member("x/1.jpg", "\xFF\xD8") +
                tar_member("x/1.json", "{\"caption\": \"not this\"}") +
                tar_member("x/1.txt", "first") + tar_member("x/2.json", "{\"text\": \"second\"}") +
                tar_member("x/3.txt", "") + tar_member("x/4.txt", std::string("b\0b", 3)) +
                tar_member("/etc/5.txt", "third") + tar_member("../../6.a.txt", "fourth") +
                tar_member("../../6.b.txt", "fifth") + tar_member("x/7.txt", "", '2') +
                tar_member("x/8.ndjson", "{\"text\": \"sixth\"}\n\n{\"text\": \"\"}") +
                tar_member("x/9.json", "{\"text\": \"\"}") + kTarEnd));
  const PackReport report = packed("a.tar.zst", "out");
  EXPECT_THAT(documents("out"),
              ElementsAre("first", "second", "third", "fourth", "fifth", "sixth"));
  EXPECT_EQ(report.counts.files, 1);
  EXPECT_EQ(report.counts.binary_files, 1);
  EXPECT_EQ(report.counts.empty_documents, 3);
  EXPECT_EQ(report.counts.skipped_members, 4) << "a folder, a picture, an object, a link";
}

TEST_F(CompressedTextsTest, ASplitKeepsGroupsTogether) {
  std::string archive;
  for (int i = 0; i < 200; ++i) {
    archive += tar_member(fmt::format("{}.a.txt", i), fmt::format("{}", i)) +
               tar_member(fmt::format("{}.b.txt", i), fmt::format("{}", i));
  }
  write("a.tgz", gzip_of(archive + kTarEnd));
  PackOptions o = options("a.tgz", "out");
  o.validation_fraction = 0.3;
  pack(o, {});
  std::vector<std::string> all;
  for (const char* part : {"out/train", "out/validation"}) {
    const std::vector<std::string> found = documents(part);
    ASSERT_GT(found.size(), 50U);
    for (std::size_t i = 0; i < found.size(); i += 2) {
      EXPECT_EQ(found[i], found[i + 1]);
    }
    all.insert(all.end(), found.begin(), found.end());
  }
  EXPECT_EQ(all.size(), 400U);
}

TEST_F(CompressedTextsTest, LongTextsAreReadInParts) {
  write_random_text("long.txt", 3'000'000, 5);
  const std::string text = read_file(folder_ / "long.txt");
  write("long.txt.zst", zstd_of(text));
  write("long.tar", tar_member("a/long.txt", text) + kTarEnd);
  for (const char* in : {"long.txt.zst", "long.tar"}) {
    PackOptions o = options(in, std::string(in) + "-out");
    o.shard_bytes = 1 << 16;
    EXPECT_EQ(pack(o, {}).front().shards, 1) << "what cannot be cut fills one shard";
    EXPECT_THAT(documents(std::string(in) + "-out"), ElementsAre(text));
  }
}

TEST_F(CompressedTextsTest, BinaryAndEmptyFilesAreSkipped) {
  write("in/a.txt", "text");
  write("in/b.bin.gz", gzip_of(std::string("a\0b", 3)));
  write("in/c.txt.gz", gzip_of(""));
  const PackReport report = packed("in", "out");
  EXPECT_THAT(documents("out"), ElementsAre("text"));
  EXPECT_EQ(report.counts.files, 2);
  EXPECT_EQ(report.counts.binary_files, 1);
  EXPECT_EQ(report.counts.empty_documents, 1);
}

TEST_F(CompressedTextsTest, RefusalsNameThePlace) {
  write("lines.jsonl.gz", gzip_of(lines(70'000) + "\n{\"text\": 5}\n"));
  EXPECT_THAT(refusal_of("lines.jsonl.gz"),
              AllOf(HasSubstr("lines.jsonl.gz: line 70002, at byte"), HasSubstr("--field")));
  write("c4.json.gz", gzip_of("{\n \"text\": \"over several lines\"}\n"));
  EXPECT_THAT(refusal_of("c4.json.gz"), HasSubstr("c4.json.gz: line 1, at byte 0: not JSON"));
  write("a.tar",
        tar_member("x/1.json", "{\"text\": \"a\"}") + tar_member("x/2.json", "[]") + kTarEnd);
  EXPECT_THAT(refusal_of("a.tar"), HasSubstr("a.tar: member x/2.json: there is no text field"));
  write("b.tar", tar_member("x/1.jsonl", "{\"text\": \"a\"}\n{\"text\"") + kTarEnd);
  EXPECT_THAT(refusal_of("b.tar"), HasSubstr("b.tar: member x/1.jsonl: line 2, at byte 14"));
  write("c.tar", gzip_of("not tar"));
  EXPECT_THAT(refusal_of("c.tar"), HasSubstr("c.tar: at byte 0 of the archive"));
  write("d.tar.gz", gzip_of(tar_member("a.txt", "text")));
  EXPECT_THAT(refusal_of("d.tar.gz"), HasSubstr("cut off"));
  write("e.txt.gz", gzip_of(lines(100)).substr(0, 60));
  EXPECT_THAT(refusal_of("e.txt.gz"), HasSubstr("e.txt.gz: the gzip data is cut off"));
  write("f.txt.zst", "not zstd");
  EXPECT_THAT(refusal_of("f.txt.zst"), HasSubstr("f.txt.zst: the zstd data is damaged"));
}

TEST_F(CompressedTextsTest, BombsAreRefused) {
  const std::string bomb = zstd_of(std::string(80 << 20, 'a'));
  ASSERT_LT(bomb.size(), 20'000U);
  write("bomb.jsonl.zst", bomb);
  EXPECT_THAT(refusal_of("bomb.jsonl.zst"), HasSubstr("expand to more than 200 times"));
  std::string claims = tar_header("a.json", 0);
  claims.replace(124, 11, "07777777777");
  sign_header(claims);
  write("claims.tar", claims + "{}");
  EXPECT_THAT(refusal_of("claims.tar"), HasSubstr("cut off"));
  claims = tar_header("a.json", std::size_t{1} << 31);
  write("large.tar", claims + "{}");
  EXPECT_THAT(refusal_of("large.tar"), HasSubstr("more than 1 GiB"));
}

}  // namespace
}  // namespace trireme
