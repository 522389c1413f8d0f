#include "io/data/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "io/data/verify.h"
#include "src/base/error.h"
#include "tests/io/data/packed_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

class PackerTest : public DataTest {
 protected:
  static std::vector<std::string> damage(const fs::path& folder) {
    const Dataset dataset = Dataset::open(folder);
    return verify_shards(folder, dataset.manifest(), 0, 1, {}).damage;
  }
};

TEST_F(PackerTest, TextComesBackDocumentByDocument) {
  write("in/a.txt", "first\ndocument");
  write("in/b/c.md", "# second \xC3\xA9\xFF\n");
  write("in/empty.txt", "");
  write("in/z.jsonl",
        "{\"text\": \"third\\n\"}\n\n{\"id\": 1, \"text\": \"f\\u00f6urth\"}\n"
        "{\"text\": \"\"}\n{\"text\": \"last\"}");
  write("in/.git/config", "not this");
  write("in/image.png", std::string("\x89PNG\0\0", 6));
  const PackReport report = pack(options("in", "out"), {}).front();
  EXPECT_EQ(documents_of_folder(folder_ / "out"),
            (std::vector<std::string>{"first\ndocument", "# second \xC3\xA9\xFF\n", "third\n",
                                      "f\xC3\xB6urth", "last"}));
  EXPECT_EQ(report.counts.binary_files, 1);
  EXPECT_EQ(report.counts.empty_documents, 2) << "a file and a line";
  EXPECT_EQ(report.n_docs, 5);
  EXPECT_EQ(report.shards, 1);
  EXPECT_FALSE(fs::exists(folder_ / "out/.pack"));
  EXPECT_EQ(damage(folder_ / "out"), std::vector<std::string>{});
}

TEST_F(PackerTest, EveryTokenIsInItsPlaceForAnyCut) {
  std::string lines;
  std::vector<std::string> wanted;
  for (int i = 0; i < 3000; ++i) {
    wanted.push_back(fmt::format("document {} {}", i, std::string(mix64(i) % 200, 'x')));
    lines += "{\"text\": \"" + wanted.back() + "\"}\n";
  }
  write("in/a.jsonl", lines);
  for (const std::int64_t shard_bytes : {65536, 70000, 99999, 1 << 20}) {
    PackOptions o = options("in", fmt::format("out{}", shard_bytes));
    o.shard_bytes = shard_bytes;
    pack(o, {});
    EXPECT_EQ(documents_of_folder(o.out), wanted) << shard_bytes;
  }
}

TEST_F(PackerTest, AFileAboveAShardIsCutAtALineAndEndsOnce) {
  write_random_text("in/big.txt", 500'000, 1);
  write("in/small.txt", "small");
  PackOptions o = options("in", "out");
  o.shard_bytes = 1 << 16;
  EXPECT_GT(pack(o, {}).front().shards, 10);
  std::string joined;
  std::int64_t ends = 0;
  for (const std::int32_t token : all_tokens(Dataset::open(o.out))) {
    ends += token == 256 ? 1 : 0;
    if (token != 256) {
      joined.push_back(static_cast<char>(token));
    }
  }
  EXPECT_EQ(joined, read_file(folder_ / "in/big.txt") + "small");
  EXPECT_EQ(ends, 2);
  for (const std::string& document : documents_of_folder(o.out)) {
    EXPECT_TRUE(document == "small" || document.back() == '\n' ||
                joined.ends_with(document + "small"));
  }
}

TEST_F(PackerTest, TheResultDoesNotDependOnRanks) {
  for (int i = 0; i < 40; ++i) {
    write_random_text(fmt::format("in/{}.txt", i), 10'000 + 700 * i, i);
  }
  std::map<std::string, std::string> first;
  for (const int ranks : {1, 2, 3, 5}) {
    PackOptions o = options("in", fmt::format("out{}", ranks));
    o.shard_bytes = 1 << 17;
    o.validation_fraction = 0.3;
    run_ranks(ranks, [&](const RankGroup& group) {
      const auto reports = pack(o, group);
      EXPECT_EQ(reports.size(), 2);
      EXPECT_GT(reports[0].shards, 3);
      EXPECT_EQ(reports[0].counts.files + reports[1].counts.files, 40);
    });
    const auto files = files_of_folder(o.out);
    EXPECT_GT(files.size(), 6);
    if (first.empty()) {
      first = files;
    }
    EXPECT_EQ(files, first) << ranks;
  }
}

TEST_F(PackerTest, TheSplitTakesEachDocumentOnce) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) {
    lines += fmt::format("{{\"text\": \"line {}\"}}\n", i);
    write(fmt::format("in/{}.txt", i), fmt::format("file {}", i));
  }
  write("in/lines.jsonl", lines);
  PackOptions o = options("in", "out");
  o.shard_bytes = 1 << 16;
  o.validation_fraction = 0.25;
  pack(o, {});
  std::vector<std::string> train = documents_of_folder(o.out / "train");
  const std::vector<std::string> validation = documents_of_folder(o.out / "validation");
  EXPECT_NEAR(static_cast<double>(validation.size()), 1000, 120);
  train.insert(train.end(), validation.begin(), validation.end());
  std::ranges::sort(train);
  EXPECT_EQ(train.size(), 4000);
  EXPECT_EQ(std::ranges::unique(train).begin(), train.end());
  // Moving the inputs to another folder does not change the split.
  fs::rename(folder_ / "in", folder_ / "moved");
  PackOptions again = options("moved", "again");
  again.shard_bytes = o.shard_bytes;
  again.validation_fraction = 0.25;
  pack(again, {});
  EXPECT_EQ(documents_of_folder(again.out / "validation"), validation);
}

TEST_F(PackerTest, ASplitThatLeavesASideEmptyWritesNothing) {
  for (int i = 0; i < 5; ++i) {
    write(fmt::format("in/{}.txt", i), fmt::format("file {}", i));
    write(fmt::format("in/{}.bin", i), std::string("\0 is no text", 13));
  }
  for (const double fraction : {1e-9, 1 - 1e-9}) {
    PackOptions o = options("in", "out");
    o.validation_fraction = fraction;
    const std::string message = message_of<ConfigError>([&] { pack(o, {}); });
    EXPECT_THAT(message,
                testing::AllOf(HasSubstr("all 5 documents would go to "),
                               HasSubstr(fraction < 0.5 ? "none to validation" : "none to train")));
    EXPECT_FALSE(fs::exists(o.out));
    // The fraction in the message gives both sides a document.
    const std::string before = ". With --validation-fraction ";
    o.validation_fraction = std::stod(message.substr(message.find(before) + before.size()));
    const auto reports = pack(o, {});
    EXPECT_EQ(reports[0].n_docs + reports[1].n_docs, 5);
    EXPECT_EQ(reports[0].folder.filename(), "train");
    fs::remove_all(o.out);
  }
  write("lines/a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  PackOptions o = options("lines", "out");
  o.validation_fraction = 1e-9;
  EXPECT_THAT(message_of<DataError>([&] { pack(o, {}); }),
              HasSubstr("goes to validation with --validation-fraction 1e-09: choose a larger"));
  EXPECT_FALSE(fs::exists(o.out / "train"));
  write("one/a.txt", "a");
  o = options("one", "out");
  o.validation_fraction = 0.5;
  EXPECT_THAT(message_of<ConfigError>([&] { pack(o, {}); }), HasSubstr("cannot be split"));
}

TEST_F(PackerTest, ForeignFoldersAreLeftAlone) {
  write("in/a.txt", "text");
  write("out/precious.txt", "mine");
  EXPECT_THROW(pack(options("in", "out"), {}), PolicyError);
  EXPECT_EQ(read_file(folder_ / "out/precious.txt"), "mine");
  pack(options("in", "good"), {});
  write("in/a.txt", "changed text");
  EXPECT_THAT(message_of<PolicyError>([&] { pack(options("in", "good"), {}); }),
              HasSubstr("other inputs"));
}

TEST_F(PackerTest, ConcurrentPacksAreRefused) {
  write("in/a.txt", "text");
  PackOptions o = options("in", "out");
  std::string refusal;
  o.progress = [&](std::int64_t, std::int64_t) {
    if (refusal.empty()) {
      refusal = message_of<PolicyError>([&] { pack(options("in", "out"), {}); });
    }
  };
  pack(o, {});
  EXPECT_THAT(refusal, HasSubstr("another `trireme data pack`"));
}

TEST_F(PackerTest, BadInputsAreNamed) {
  EXPECT_THROW(pack(options("absent", "out"), {}), NotFound);
  fs::create_directories(folder_ / "in");
  EXPECT_THROW(pack(options("in", "out"), {}), DataError);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  write("in/empty.txt", "");
  write("in/image.bin", std::string(100, '\0'));
  EXPECT_THAT(message_of<DataError>([&] { pack(options("in", "out"), {}); }),
              HasSubstr("skipped as binary: 1"));
  write("in/broken.jsonl", "{\"text\": \"good\"}\n{\"text\": \n");
  EXPECT_THAT(message_of<DataError>([&] { pack(options("in", "o2"), {}); }),
              HasSubstr("broken.jsonl: line 2, at byte 17: "));
  EXPECT_FALSE(fs::exists(folder_ / "o2"));
  write("in/broken.jsonl", "{\"body\": \"good\"}\n");
  EXPECT_THAT(message_of<DataError>([&] { pack(options("in", "o3"), {}); }), HasSubstr("--field"));
  PackOptions o = options("in", "o4");
  o.field = "body";
  EXPECT_EQ(pack(o, {}).front().n_docs, 1);
  o.shard_bytes = 10;
  EXPECT_THROW(pack(o, {}), ConfigError);
  o = options("in", "o5");
  o.validation_fraction = 1;
  EXPECT_THROW(pack(o, {}), ConfigError);
  o = options("in", "o5");
  o.tokenizer = "words";
  EXPECT_THROW(pack(o, {}), ConfigError);
}

TEST_F(PackerTest, LinesOfJsonAreReadWhateverElseTheyHold) {
  const std::string deep(200'000, '[');
  write("in/a.jsonl", "{\"in\": {\"text\": \"inner\"}, \"x\": " + std::string(31, '[') +
                          std::string(31, ']') + ", \"text\": \"last\", \"x\": 1}\n");
  pack(options("in", "out"), {});
  EXPECT_EQ(documents_of_folder(folder_ / "out"), std::vector<std::string>{"last"});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"text\": [\"a\"]}", "there is no text field 'text'"},
      {"{\"in\": {\"text\": \"a\"}}", "there is no text field 'text'"},
      {"[{\"text\": \"a\"}]", "there is no text field 'text'"},
      {"{\"text\": \"a\"} more", "not JSON"},
      {"{\"text\": \"\xFF\"}", "not JSON"},
      {std::string("{\"text\": \"\0\"}", 13), "not JSON"},
      {"{\"x\": " + deep, "nested deeper than 32 levels"},
      {"{\"x\": " + std::string(32, '[') + std::string(32, ']') + ", \"text\": \"a\"}",
       "nested deeper than 32 levels"},
      {"{\"text\": \"a\", \"text\": \"b\"}", "the field 'text' occurs twice"},
      {"{\"text\": null, \"text\": \"b\"}", "the field 'text' occurs twice"},
      {"{\"text\": \"" + std::string(1 << 20, 'x'), "not JSON"},
  };
  for (const auto& [line, words] : cases) {
    write("in/a.jsonl", line);
    const std::string message = message_of<DataError>([&] { pack(options("in", "o2"), {}); });
    EXPECT_THAT(message, HasSubstr("a.jsonl: line 1, at byte 0: " + words));
    EXPECT_LT(message.size(), 1000U);
  }
}

TEST_F(PackerTest, AJsonlFileWithoutLinesIsRefusedBeforeItIsRead) {
  write("in/a.jsonl", "{");
  fs::resize_file(folder_ / "in/a.jsonl", std::uintmax_t{1} << 40);
  EXPECT_THAT(message_of<DataError>([&] { pack(options("in", "out"), {}); }),
              testing::AllOf(HasSubstr("a.jsonl"), HasSubstr("no line ends within 1 GiB")));
}

TEST_F(PackerTest, PatternsAndTheOutputAreLeftOut) {
  write("in/a.txt", "a");
  write("in/b.log", "b");
  write("in/build/c.txt", "c");
  fs::create_symlink(folder_ / "in/a.txt", folder_ / "in/link.txt");
  fs::create_directory_symlink(folder_ / "in", folder_ / "in/loop");
  fs::create_symlink(folder_ / "absent", folder_ / "in/excluded.log");
  ASSERT_EQ(::mkfifo((folder_ / "in/fifo.txt").c_str(), 0600), 0);
  PackOptions o = options("in", "in/out");
  o.exclude = {"*.log", "build"};
  EXPECT_EQ(pack(o, {}).front().skipped_inputs, 3);
  EXPECT_EQ(documents_of_folder(o.out), std::vector<std::string>{"a"});
  EXPECT_TRUE(pack(o, {}).front().was_complete) << "the output became an input";
  o.out = folder_ / "in/second";
  EXPECT_EQ(pack(o, {}).front().counts.files, 1) << "the first dataset became an input";
  EXPECT_EQ(documents_of_folder(o.out), std::vector<std::string>{"a"});
  EXPECT_THAT(message_of<ConfigError>([&] { pack(options("in/out", "third"), {}); }),
              HasSubstr("in/out is a dataset already"));
}

TEST_F(PackerTest, AFullDiskIsAnIoErrorAndThePackGoesOn) {
  const SmallFileSystem disk(1 << 20);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  write_random_text("in/big.txt", 900'000, 1);
  PackOptions o = options("in", "out");
  o.out = disk.path() / "out";
  EXPECT_THAT(message_of<IoError>([&] { pack(o, {}); }), HasSubstr("full"));
  EXPECT_FALSE(fs::exists(o.out));
  ASSERT_EQ(::mount("tmpfs", disk.path().c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
  pack(o, {});
  EXPECT_EQ(damage(o.out), std::vector<std::string>{});
}

TEST_F(PackerTest, RefusesAnAlignmentThatIsNoPowerOfTwoOrTooLarge) {
  write_random_text("in/a.txt", 1'000, 1);
  PackOptions o = options("in", "out");
  for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{4095}, std::int64_t{1} << 40}) {
    o.alignment_bytes = bytes;
    EXPECT_THROW(pack(o, {}), ConfigError) << bytes;
  }
}

TEST_F(PackerTest, AlignmentIsKept) {
  write_random_text("in/a.txt", 10'000, 1);
  PackOptions o = options("in", "out");
  o.alignment_bytes = 1 << 20;
  pack(o, {});
  EXPECT_EQ(Dataset::open(o.out).manifest().shards[0].data_offset % (1 << 20), 0);
  EXPECT_EQ(damage(o.out), std::vector<std::string>{});
}

}  // namespace
}  // namespace trireme
