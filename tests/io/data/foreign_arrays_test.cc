// Tests the exchange of token datasets with programs that use NumPy and Megatron-LM's format: what
// Python wrote is converted, and Python reads what was exported.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "io/data/convert.h"
#include "io/data/dataset_export.h"
#include "io/data/label_file.h"
#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kPythonSkips = 77;

int python_status(const std::string& script, const std::string& arguments) {
  const std::string command =
      fmt::format("/usr/bin/python3 {}/tests/io/data/{} {}", TRIREME_SOURCE_DIR, script, arguments);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::int64_t token_of(std::int64_t i, bool is_short = false) {
  return i * 7919 % 50'000 % (is_short ? 100 : 50'000);
}

class ForeignArraysTest : public DataTest {
 protected:
  static void SetUpTestSuite() {
    written_folder_ = std::make_unique<TempFolder>();
    written_ = python_status("write_arrays.py", written_folder_->path().string());
  }
  static void TearDownTestSuite() { written_folder_.reset(); }
  void SetUp() override {
    if (written_ == kPythonSkips) {
      GTEST_SKIP() << "NumPy is missing: install python3-numpy (./dev install-deps)";
    }
    ASSERT_EQ(written_, 0);
  }
  static std::string written(const std::string& name) { return written_folder_->path() / name; }

  ConvertOptions from(const std::string& path) const {
    ConvertOptions options;
    options.inputs = {path};
    options.out = folder_ / "out";
    options.vocab = 50'000;
    options.shard_bytes = 1 << 16;
    return options;
  }
  // Converts a file, and expects its tokens and documents in the dataset.
  void expect_converted(const std::string& path, bool is_short,
                        const std::vector<std::int64_t>& ends) const {
    SCOPED_TRACE(path);
    fs::remove_all(folder_ / "out");
    const PackReport report = convert(from(path), {});
    const Dataset dataset = Dataset::open(folder_ / "out");
    const std::vector<std::int32_t> tokens = all_tokens(dataset);
    ASSERT_EQ(tokens.size(), 6000U);
    for (std::int64_t i = 0; i < 6000; ++i) {
      ASSERT_EQ(tokens[static_cast<std::size_t>(i)], token_of(i, is_short)) << i;
    }
    EXPECT_EQ(dataset.document_offsets(0), ends);
    EXPECT_EQ(report.n_docs, std::ssize(ends) - 1);
  }
  std::string convert_refusal(const std::string& path) const {
    const std::string words = message_of<DataError>([&] { convert(from(path), {}); });
    EXPECT_FALSE(fs::exists(folder_ / "out")) << path << ": nothing is written";
    return words;
  }

 private:
  static inline std::unique_ptr<TempFolder> written_folder_;
  static inline int written_ = -1;
};

TEST_F(ForeignArraysTest, MegatronFilesOfEveryTypeAreConverted) {
  for (const char* kind : {"u1", "i1", "i2", "i4", "i8", "u2"}) {
    const bool is_short = std::string_view("u1 i1 i2").find(kind) != std::string_view::npos;
    for (const char* end : {".idx", ".bin", ""}) {
      expect_converted(written(fmt::format("megatron-{}{}", kind, end)), is_short,
                       {0, 1000, 5999, 6000});
    }
  }
  expect_converted(written("megatron-two.idx"), false, {0, 5999, 6000});
}

TEST_F(ForeignArraysTest, ArraysOfEveryTypeAreConverted) {
  for (const char* kind : {"u1", "i1", "i2", "i4", "i8", "u2"}) {
    const bool is_short = std::string_view("u1 i1 i2").find(kind) != std::string_view::npos;
    for (const char* order : {"le", "be"}) {
      expect_converted(written(fmt::format("{}{}.npy", kind, order)), is_short, {0, 6000});
    }
  }
  for (const char* name : {"u4.npy", "u8.npy", "version2.npy", "version3.npy"}) {
    expect_converted(written(name), false, {0, 6000});
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t end = 0; end <= 6000; end += 100) {
    rows.push_back(end);
  }
  expect_converted(written("rows.npy"), false, rows);
  expect_converted(written("columns.npy"), false, rows);
  expect_converted(written("wide.npy"), false, {0, 3000, 6000});
  expect_converted(written("cut.npy"), false, {0, 1000, 5999, 6000});
}

TEST_F(ForeignArraysTest, AFolderIsConvertedByAnyNumberOfRanks) {
  fs::create_directories(folder_ / "in");
  for (const char* name :
       {"megatron-u2.idx", "megatron-u2.bin", "rows.npy", "cut.npy", "cut.offsets.npy"}) {
    fs::copy(written(name), folder_ / "in" / name);
  }
  write("in/alone.bin", "no index");
  std::string digest;
  for (const int ranks : {1, 3}) {
    fs::remove_all(folder_ / "out");
    run_ranks(ranks, [&](const RankGroup& group) {
      const PackReport report = convert(from(folder_ / "in"), group);
      EXPECT_EQ(report.n_tokens, 18'000);
      EXPECT_EQ(report.n_docs, 66);
      EXPECT_TRUE(digest.empty() || report.digest == digest);
    });
    digest = Dataset::open(folder_ / "out").manifest().digest();
  }
}

TEST_F(ForeignArraysTest, WhatCannotBeTokensIsRefused) {
  EXPECT_THAT(convert_refusal(written("cube.npy")), HasSubstr("3 dimensions"));
  EXPECT_THAT(convert_refusal(written("floats.npy")), HasSubstr("type '<f4'"));
  EXPECT_THAT(convert_refusal(written("objects.npy")), HasSubstr("type '|O'"));
  EXPECT_THAT(convert_refusal(written("wrong.npy")),
              AllOf(HasSubstr("wrong.offsets.npy [1] is 7000"), HasSubstr("beyond the end")));
  fs::copy(written("megatron-u2.idx"), folder_ / "x.idx");
  EXPECT_THAT(convert_refusal(folder_ / "x.idx"), HasSubstr("there is no file"));
  write("x.bin", "short");
  EXPECT_THAT(convert_refusal(folder_ / "x.idx"), HasSubstr("one of them is cut off"));
  write("y.bin", "alone");
  EXPECT_THAT(convert_refusal(folder_ / "y.bin"), HasSubstr("none of the inputs"));
  ConvertOptions o = from(written("megatron-u2"));
  o.vocab = 49'000;
  EXPECT_THAT(message_of<DataError>([&] { convert(o, {}); }),
              AllOf(HasSubstr("megatron-u2.bin: token 82, at byte 164, is 49358"),
                    HasSubstr("outside the vocabulary of 49000")));
  o = from(written("u2be.npy"));
  o.vocab = 49'000;
  EXPECT_THAT(message_of<DataError>([&] { convert(o, {}); }),
              HasSubstr("u2be.npy: element 82 is 49358"));
  EXPECT_THAT(convert_refusal(written("negative.npy")),
              AllOf(HasSubstr("negative.npy: element 1 is -1: token ids are not negative")));
  o.offsets = "/x";
  EXPECT_THAT(message_of<ConfigError>([&] { convert(o, {}); }), HasSubstr("is none"));
}

TEST_F(ForeignArraysTest, PythonReadsWhatIsExported) {
  for (int i = 0; i < 12; ++i) {
    write_random_text(fmt::format("in/{:02}.txt", i), 1 + i * 4000, static_cast<std::uint64_t>(i));
  }
  PackOptions o = options("in", "data");
  o.shard_bytes = 1 << 17;
  ASSERT_GT(pack(o, {}).front().shards, 2);
  const Dataset dataset = Dataset::open(o.out);
  ConvertOptions wide = from(written("u4.npy"));
  wide.out = folder_ / "wide";
  wide.vocab = 70'000;
  convert(wide, {});
  for (const auto& [format, word] :
       {std::pair{ArrayFormat::megatron, "megatron"}, {ArrayFormat::npy, "npy"}}) {
    SCOPED_TRACE(word);
    for (const int ranks : {1, 4}) {
      const DatasetExport one = {format, folder_ / fmt::format("{}-{}", word, ranks)};
      run_ranks(ranks, [&](const RankGroup& group) { export_dataset(dataset, one, group); });
      EXPECT_EQ(python_status("read_exported.py",
                              fmt::format("{} {} {}", o.out.string(), word, one.out.string())),
                0);
    }
    const DatasetExport other = {format, folder_ / fmt::format("{}-wide", word)};
    export_dataset(Dataset::open(wide.out), other, {});
    EXPECT_EQ(python_status("read_exported.py",
                            fmt::format("{} {} {}", wide.out.string(), word, other.out.string())),
              0);
    // What was exported gives the same dataset again.
    ConvertOptions back = from(exported_files({format, folder_ / fmt::format("{}-4", word)})[0]);
    back.vocab = 257;
    back.tokenizer = "bytes";
    back.shard_bytes = 1 << 30;
    fs::remove_all(back.out);
    EXPECT_EQ(convert(back, {}).n_docs, dataset.manifest().n_docs());
    EXPECT_EQ(all_tokens(Dataset::open(back.out)), all_tokens(dataset));
  }
}

// What is converted from an export is restricted as the dataset was, whatever else is said.
TEST_F(ForeignArraysTest, TheLabelGoesWithTheTokens) {
  write("in/a.txt", "some words");
  PackOptions o = options("in", "data");
  o.label = parse_label({"classification=secret", "jurisdiction=AE,SA", "retention=2030-12-31"});
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  for (const ArrayFormat format : {ArrayFormat::megatron, ArrayFormat::npy}) {
    const DatasetExport one = {format, folder_ / "exported"};
    export_dataset(dataset, one, {});
    const std::vector<fs::path> files = exported_files(one, false, true);
    EXPECT_EQ(read_file(files.back()), label_file_text(*o.label));
    ConvertOptions back = from(files[0]);
    back.vocab = 257;
    back.label = parse_label({"classification=public", "jurisdiction=SA", "owner=health"});
    back.classifications = default_classifications();
    std::optional<Label> asked;
    back.admit = [&](const std::optional<Label>& label) { asked = label; };
    fs::remove_all(back.out);
    convert(back, {});
    EXPECT_EQ(asked, join(o.label, back.label, back.classifications));
    EXPECT_EQ(Dataset::open(back.out).manifest().label, asked);

    // A link does not leave the label behind.
    fs::create_directories(folder_ / "links");
    for (const fs::path& file : files) {
      if (&file != &files.back()) {
        fs::create_symlink(file, folder_ / "links" / file.filename());
      }
    }
    fs::remove_all(back.out);
    back.inputs = {folder_ / "links" / files[0].filename()};
    convert(back, {});
    EXPECT_EQ(Dataset::open(back.out).manifest().label, asked);
    fs::remove_all(folder_ / "links");
    back.inputs = {files[0]};

    fs::remove_all(back.out);
    back.admit = [](const auto&) { throw PolicyError("not here"); };
    EXPECT_THROW(convert(back, {}), PolicyError);
    EXPECT_FALSE(fs::exists(back.out));
    for (const char* const damaged : {"", "{}", "[]", R"({"label": {"classification": 1}})"}) {
      std::ofstream(files.back()) << damaged;
      EXPECT_THAT(convert_refusal(files[0]), HasSubstr(files.back().string())) << damaged;
    }
  }
}

// The label gets its name before the tokens do.
TEST_F(ForeignArraysTest, AnInterruptedExportLeavesNoTokensWithoutALabel) {
  write("in/a.txt", "some words");
  PackOptions o = options("in", "data");
  o.label = parse_label({"classification=secret"});
  pack(o, {});
  DatasetExport one = {ArrayFormat::npy, folder_ / "exported"};
  const std::vector<fs::path> files = exported_files(one, false, true);
  one.progress = [&](std::int64_t, std::int64_t) {  // the second of three names cannot be given
    fs::create_directories(files[1] / "in the way");
  };
  EXPECT_ANY_THROW(export_dataset(Dataset::open(o.out), one, {}));
  EXPECT_FALSE(fs::exists(files[0]));
  EXPECT_TRUE(fs::exists(files[2]));
}

TEST_F(ForeignArraysTest, AnExportReplacesNothingAndLeavesNothingHalfWritten) {
  write("in/a.txt", std::string(3'000'000, 'a'));
  pack(options("in", "data"), {});
  write("x.idx", "mine");
  const DatasetExport onto = {ArrayFormat::megatron, folder_ / "x"};
  EXPECT_THROW(export_dataset(Dataset::open(folder_ / "data"), onto, {}), PolicyError);
  EXPECT_EQ(read_file(folder_ / "x.idx"), "mine");
  EXPECT_FALSE(fs::exists(folder_ / "x.bin"));
  flip_bit(folder_ / "data/shards/00000.h5", 4'000'000);
  const DatasetExport damaged = {ArrayFormat::npy, folder_ / "y"};
  EXPECT_THROW(export_dataset(Dataset::open(folder_ / "data"), damaged, {}), DataError);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("in", "data", "x.idx"));
}

}  // namespace
}  // namespace trireme
