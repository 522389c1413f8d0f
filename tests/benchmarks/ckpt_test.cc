#include "benchmarks/ckpt/ckpt.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "benchmarks/loader/loader.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// Runs on a disk, and in memory, where dd's direct I/O may be refused.
TEST(BenchCkpt, MeasuresAndCleansUp) {
  const TempFolder on_disk;
  for (const std::filesystem::path& folder : {on_disk.path(), std::filesystem::path("/dev/shm")}) {
    const auto results = bench_ckpt({.folder = folder, .bytes = 3 << 20, .rounds = 1});
    ASSERT_EQ(results.size(), 3U);
    for (const auto& result : results) {
      EXPECT_GT(result.at("metrics").at("fraction_of_ceiling").get<double>(), 0);
      EXPECT_GT(result.at("metrics").at("bytes_per_s").get<double>(), 0);
    }
    EXPECT_EQ(results[0].at("name"), "ckpt_stall");
    EXPECT_GT(results[0].at("metrics").at("ratio").get<double>(), 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(on_disk.path()));
}

TEST(BenchCkpt, MeasuresMemoryWhereItIsAsked) {
  const TempFolder disk;
  const TempFolder memory;
  const auto results =
      bench_ckpt({.folder = disk.path(), .bytes = 3 << 20, .rounds = 1, .memory = memory.path()});
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[3].at("name"), "ckpt_memory_stall");
  EXPECT_GT(results[3].at("metrics").at("ratio").get<double>(), 0);
  EXPECT_EQ(results[4].at("name"), "ckpt_memory_load");
  EXPECT_TRUE(std::filesystem::is_empty(memory.path()));
}

TEST(BenchCkpt, ComparesEncryptedWithPlain) {
  const TempFolder disk;
  const auto results =
      bench_ckpt({.folder = disk.path(), .bytes = 3 << 20, .rounds = 1, .encrypt = true});
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[3].at("name"), "ckpt_encrypted_stall");
  EXPECT_EQ(results[4].at("name"), "ckpt_encrypted_write");
  EXPECT_EQ(results[5].at("name"), "ckpt_encrypted_load");
  EXPECT_EQ(results[4].at("samples").at("ceiling_seconds"), results[1].at("samples").at("seconds"));
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
}

TEST(BenchCkpt, TakesAFolderThatIsThere) {
  const TempFolder folder;
  EXPECT_THROW(bench_ckpt({.folder = folder.path() / "none/x", .bytes = 1 << 20, .rounds = 1}),
               NotFound);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BenchCkpt, RunsAlone) {
  const TempFolder folder;
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_THROW(bench_ckpt({.folder = folder.path(), .bytes = 1 << 20, .rounds = 1}), ConfigError);
  EXPECT_THROW(bench_loader({}), ConfigError);
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
}

}  // namespace
}  // namespace trireme
