// Tests the exchange with other programs: h5py reads our datasets, and we convert what h5py wrote.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "io/data/convert.h"
#include "io/data/verify.h"
#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr int kSkipped = 77;

int run_python(const std::string& script, const std::string& arguments) {
  const std::string command =
      fmt::format("/usr/bin/python3 {}/tests/io/data/{} {}", TRIREME_SOURCE_DIR, script, arguments);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Refusal has the name of a file of write_foreign.py, and words of the error that refuses it.
struct Refusal {
  const char* name;
  std::vector<const char*> words;
};

class ForeignTest : public DataTest {
 protected:
  static void SetUpTestSuite() {
    foreign_folder_ = std::make_unique<TempFolder>();
    written_ = run_python("write_foreign.py", foreign_folder_->path().string());
  }
  static void TearDownTestSuite() { foreign_folder_.reset(); }

  void SetUp() override {
    if (written_ == kSkipped) {
      GTEST_SKIP() << "h5py is missing: install python3-h5py (./dev install-deps)";
    }
    ASSERT_EQ(written_, 0);
  }
  static fs::path foreign(const std::string& name) {
    return foreign_folder_->path() / (name + ".h5");
  }
  ConvertOptions convert_options(const fs::path& in) const {
    ConvertOptions options;
    options.inputs = {in.string()};
    options.out = folder_ / "out";
    options.vocab = 50'000;
    return options;
  }
  void expect_refused(const Refusal& one) const {
    SCOPED_TRACE(one.name);
    const std::string words =
        message_of<DataError>([&] { convert(convert_options(foreign(one.name)), {}); });
    EXPECT_THAT(words, HasSubstr(foreign(one.name).string()));
    for (const char* word : one.words) {
      EXPECT_THAT(words, HasSubstr(word));
    }
  }

 private:
  static inline std::unique_ptr<TempFolder> foreign_folder_;
  static inline int written_ = -1;
};

TEST_F(ForeignTest, H5pyReadsBackThePackedText) {
  std::string texts;
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("in/{:02}.txt", i);
    write_random_text(name, 1 + i * 4000, static_cast<std::uint64_t>(i));
    texts += " " + (folder_ / name).string();
  }
  PackOptions o = options("in", "data");
  o.shard_bytes = 1 << 17;
  o.source = "caf\xC3\xA9";
  EXPECT_GT(pack(o, {}).front().shards, 2);
  EXPECT_EQ(run_python("read_with_h5py.py", o.out.string() + texts), 0);
}

TEST_F(ForeignTest, ChunkedAndFilteredFilesAreConverted) {
  ConvertOptions o = convert_options(foreign("gzip"));
  o.shard_bytes = 1 << 16;
  PackReport report;
  run_ranks(2, [&](const RankGroup& ranks) {
    const PackReport mine = convert(o, ranks);
    if (ranks.rank == 0) {
      report = mine;
    }
  });
  EXPECT_EQ(report.shards, 4);
  EXPECT_EQ(report.n_tokens, 100'000);
  // The ends of three shards cut the four documents.
  EXPECT_EQ(report.n_docs, 7);
  const Dataset dataset = Dataset::open(o.out);
  EXPECT_TRUE(verify_shards(o.out, dataset.manifest(), 0, 1, {}).damage.empty());
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(tokens[i], static_cast<std::int64_t>(i) * 7919 % 50'000);
  }
}

// libhdf5 1.10 follows the address that is overwritten here, and crashes.
TEST_F(ForeignTest, ACrashOfTheLibraryIsBadData) {
  const fs::path damaged = folder_ / "damaged.h5";
  std::string bytes = read_file(foreign("plain"), 1 << 26);
  ASSERT_EQ(bytes.substr(136, 4), "TREE");
  bytes.replace(168, 8, 8, '\xFF');
  std::ofstream(damaged, std::ios::binary) << bytes;
  EXPECT_EXIT(
      {
        try {
          convert(convert_options(damaged), {});
        } catch (const DataError& error) {  // another version of the library
          fmt::print(stderr, "{}\n", error.what());
          std::_Exit(65);
        }
      },
      testing::ExitedWithCode(65), "damaged.h5: ");
}

TEST_F(ForeignTest, OtherNamesAndWideVocabularies) {
  ConvertOptions o = convert_options(foreign("plain"));
  EXPECT_THAT(message_of<DataError>([&] { convert(o, {}); }), HasSubstr("--tokens"));
  o.tokens = "/group/ids";
  o.vocab = 128'000;
  convert(o, {});
  const Dataset dataset = Dataset::open(o.out);
  EXPECT_EQ(dataset.manifest().token_bytes, 4);
  EXPECT_EQ(all_tokens(dataset)[4999], 4999 * 7919 % 50'000);
}

TEST_F(ForeignTest, WhatCannotBeTokensIsRefused) {
  EXPECT_THAT(message_of<DataError>([&] { convert(convert_options(foreign("negative")), {}); }),
              testing::AllOf(HasSubstr("[2] is -3"), HasSubstr("not negative")));
  expect_refused({"beyond_63_bits", {"[1] is 9223372036854775807 or more, outside"}});
  expect_refused({"empty", {"/tokens of ", "empty.h5 is empty"}});
  fs::remove_all(folder_ / "out");
  EXPECT_THROW(convert(convert_options(foreign("floats")), {}), DataError);
  EXPECT_THROW(convert(convert_options(foreign("matrix")), {}), DataError);
  for (const char* text : {"no HDF5", ""}) {
    write("text.h5", text);
    EXPECT_THAT(message_of<DataError>([&] { convert(convert_options(folder_ / "text.h5"), {}); }),
                testing::Not(HasSubstr("HDF5_USE_FILE_LOCKING")));
  }
  EXPECT_THROW(convert(convert_options(folder_ / "absent.h5"), {}), NotFound);
  ConvertOptions o = convert_options(folder_ / "text.h5");
  o.vocab = 0;
  EXPECT_THROW(convert(o, {}), ConfigError);
  o.vocab = 10;
  o.tokens = "";
  EXPECT_THROW(convert(o, {}), ConfigError);
  o = convert_options(foreign("one_chunk"));
  o.source = std::string(100'000, 'x');
  EXPECT_THAT(message_of<ConfigError>([&] { convert(o, {}); }), HasSubstr("source is 100000"));
}

TEST_F(ForeignTest, EveryCompleteLayoutIsRead) {
  const std::vector<std::pair<const char*, std::int64_t>> cases = {
      {"one_chunk", 100'000}, {"chunks_without_filters", 100'000}, {"growing", 100'000},
      {"compact", 1000},      {"plain_edges_latest", 100'000},     {"growing_latest", 100'000},
  };
  for (const auto& [name, count] : cases) {
    SCOPED_TRACE(name);
    fs::remove_all(folder_ / "out");
    EXPECT_EQ(convert(convert_options(foreign(name)), {}).n_tokens, count);
    const std::vector<std::int32_t> tokens = all_tokens(Dataset::open(folder_ / "out"));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(tokens[i], static_cast<std::int64_t>(i) * 7919 % 50'000) << i;
    }
  }
  fs::remove_all(folder_ / "out");
  convert(convert_options(foreign("odd_checksum")), {});
  EXPECT_EQ(all_tokens(Dataset::open(folder_ / "out"))[99'999], 99'999 * 7919 % 50'000 % 200);
}

TEST_F(ForeignTest, WhatAFileDoesNotHoldIsNeverMadeUp) {
  const std::vector<Refusal> cases = {
      {"unfinished", {"/tokens has 5 of its 100 chunks", "Write the file again"}},
      {"unfinished_latest", {"/tokens has 5 of its 100 chunks"}},
      {"unfinished_growing_latest", {"/tokens has 5 of its 100 chunks"}},
      {"one_chunk_never_written_latest", {"/tokens has 0 of its 1 chunks"}},
      {"never_written", {"/tokens has storage for 0 of its 200000 bytes"}},
      {"huge", {"/tokens claims 4611686018427387904 elements", "damaged"}},
      {"offsets_beyond", {"/doc_offsets [2] is 101", "beyond the end", "--offsets"}},
      {"offsets_beyond_63_bits", {"/doc_offsets [2] is 9223372036854775807 or more, which lies"}},
      {"offsets_begin_beyond_63_bits", {"/doc_offsets starts with 9223372036854775807 or more"}},
      {"offsets_descend", {"/doc_offsets [2] is 50, less than"}},
      {"offsets_negative", {"/doc_offsets starts with -1"}},
      {"offsets_begin_late",
       {"/doc_offsets starts with 10", "from 0 to the number of tokens, 100"}},
      {"offsets_end_early", {"/doc_offsets ends with 50"}},
      {"offsets_empty", {"/doc_offsets is empty"}},
      {"offsets_huge", {"/doc_offsets claims 17179869184 elements"}},
      {"offsets_unfinished", {"/doc_offsets has storage for 0 of its 24 bytes"}},
      {"offsets_by_dangling_link", {"no HDF5 dataset /doc_offsets", "--offsets"}},
      {"offsets_are_a_group", {"no HDF5 dataset /doc_offsets", "--offsets"}},
  };
  for (const Refusal& one : cases) {
    expect_refused(one);
    EXPECT_FALSE(fs::exists(folder_ / "out")) << one.name << ": nothing is written";
  }
  ConvertOptions o = convert_options(foreign("one_chunk"));
  o.offsets = "/documents";
  EXPECT_THAT(message_of<DataError>([&] { convert(o, {}); }),
              testing::AllOf(HasSubstr("/documents"), HasSubstr("--offsets")));
  write("tokens.bin", "x");
  EXPECT_THAT(message_of<DataError>([&] { convert(convert_options(folder_ / "tokens.bin"), {}); }),
              HasSubstr(".hdf5"));
}

TEST_F(ForeignTest, AFileLeadsToNoOtherFile) {
  const std::vector<Refusal> cases = {
      {"virtual", {"/tokens is a virtual dataset", "one file"}},
      {"virtual_of_itself", {"/tokens is a virtual dataset"}},
      {"external_storage", {"/tokens has external storage"}},
      {"external_link", {"/tokens is a link into another file"}},
      {"soft_link_to_itself", {"/tokens is a soft link", "back to itself"}},
      {"soft_link_out", {"/tokens is a soft link that leads out of this file"}},
      {"foreign_filter", {"filter 32000 (lzf)", "h5repack"}},
  };
  for (const Refusal& one : cases) {
    expect_refused(one);
  }
  ConvertOptions o = convert_options(foreign("plain"));
  o.tokens = "/tokens_by_soft_link";
  EXPECT_EQ(convert(o, {}).n_tokens, 5000);
}

TEST_F(ForeignTest, DamagedChunksAreRefused) {
  const std::vector<Refusal> cases = {
      {"chunk_inflates_short", {"at element 0", "40000 bytes instead of 400000"}},
      {"chunk_inflates_long", {"at element 0", "too long"}},
      {"chunk_is_no_deflate", {"at element 0", "deflate stream is damaged"}},
      {"chunk_without_filter_is_short", {"at element 0", "4000 bytes instead of 400000"}},
      {"chunk_checksum", {"at element 5000", "checksum (fletcher32)"}},
  };
  for (const Refusal& one : cases) {
    expect_refused(one);
    fs::remove_all(folder_ / "out");
  }
}

}  // namespace
}  // namespace trireme
