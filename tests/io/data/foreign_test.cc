// Datasets and other programs: h5py reads ours, and we convert what h5py wrote.
#include <cstdlib>

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

class ForeignTest : public DataTest {
 protected:
  // Skips the test where there is no h5py.
  fs::path foreign(const std::string& choice) {
    const fs::path path = folder_ / (choice + ".h5");
    EXPECT_EQ(run_python("write_foreign.py", path.string() + " " + choice), 0);
    return path;
  }
  ConvertOptions convert_options(const fs::path& in) const {
    ConvertOptions options;
    options.inputs = {in.string()};
    options.out = folder_ / "out";
    options.vocab = 50'000;
    return options;
  }
  static bool has_h5py() { return std::system("/usr/bin/python3 -c 'import h5py'") == 0; }
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
  const int code = run_python("read_with_h5py.py", o.out.string() + texts);
  if (code == kSkipped) {
    GTEST_SKIP() << "python3-h5py is not installed";
  }
  EXPECT_EQ(code, 0);
}

TEST_F(ForeignTest, ChunkedAndFilteredFilesAreConverted) {
  if (!has_h5py()) {
    GTEST_SKIP() << "python3-h5py is not installed";
  }
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
  // Four documents, cut by three ends of shards.
  EXPECT_EQ(report.n_docs, 7);
  const Dataset dataset = Dataset::open(o.out);
  EXPECT_TRUE(verify_shards(o.out, dataset.manifest(), 0, 1, {}).damage.empty());
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ASSERT_EQ(tokens[i], static_cast<std::int64_t>(i) * 7919 % 50'000);
  }
}

TEST_F(ForeignTest, OtherNamesAndWideVocabularies) {
  if (!has_h5py()) {
    GTEST_SKIP() << "python3-h5py is not installed";
  }
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
  if (!has_h5py()) {
    GTEST_SKIP() << "python3-h5py is not installed";
  }
  EXPECT_THAT(message_of<DataError>([&] { convert(convert_options(foreign("negative")), {}); }),
              testing::AllOf(HasSubstr("[2] is -3"), HasSubstr("--vocab")));
  fs::remove_all(folder_ / "out");
  EXPECT_THROW(convert(convert_options(foreign("floats")), {}), DataError);
  EXPECT_THROW(convert(convert_options(foreign("matrix")), {}), DataError);
  write("text.h5", "no HDF5");
  EXPECT_THROW(convert(convert_options(folder_ / "text.h5"), {}), DataError);
  EXPECT_THROW(convert(convert_options(folder_ / "absent.h5"), {}), NotFound);
  ConvertOptions o = convert_options(folder_ / "text.h5");
  o.vocab = 0;
  EXPECT_THROW(convert(o, {}), ConfigError);
}

}  // namespace
}  // namespace trireme
