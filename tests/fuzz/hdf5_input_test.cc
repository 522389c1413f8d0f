#include "tests/fuzz/hdf5_input.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "src/base/file.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(TRIREME_SOURCE_DIR) / "tests/fuzz/corpus/hdf5_fuzz";

Hdf5Outcome outcome_of(const std::string& name) {
  return read_hdf5_input(read_file(kCorpus / name));
}

TEST(Hdf5Input, WholeFilesAreOpenedAndRead) {
  for (const char* name :
       {"chunks", "contiguous", "gzip", "gzip-growing", "gzip-latest", "shard"}) {
    const Hdf5Outcome outcome = outcome_of(name);
    EXPECT_TRUE(outcome.tokens_read) << name;
    EXPECT_EQ(outcome.shard_accepted, std::string(name) == "shard") << name;
    EXPECT_FALSE(outcome.contained) << name;
  }
}

TEST(Hdf5Input, LinksOutOfTheFileAndOtherTextsAreRefused) {
  for (const char* name : {"external-link", "virtual"}) {
    const Hdf5Outcome outcome = outcome_of(name);
    EXPECT_FALSE(outcome.tokens_read || outcome.shard_accepted || outcome.contained) << name;
  }
  const Hdf5Outcome outcome = read_hdf5_input("this is no HDF5 file");
  EXPECT_FALSE(outcome.tokens_read || outcome.shard_accepted || outcome.contained);
}

TEST(Hdf5Input, AnEndlessLoopOfTheLibraryIsContained) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer holds signals back while libhdf5 loops";
#endif
  EXPECT_TRUE(outcome_of("heap-loop").contained);
}

}  // namespace
}  // namespace trireme
