// Tests that a step and its provenance are committed together.
#include "io/checkpoint/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Commit, WritesTheProvenanceOfTheManifest) {
  TempFolder folder;
  DiskOptions options = options_for(folder.path());
  options.io.sha256 = true;
  options.provenance = [](const Manifest& manifest, std::string_view text) {
    std::string lines = sha256_hex(text);
    for (const StoredShard& shard : manifest.shards) {
      lines += "\n" + shard.file + " " + shard.sha256;
    }
    return lines;
  };
  ASSERT_TRUE(save_state(options, small_state(1), 2, cut_nothing, 2).durable);
  const fs::path step = folder.path() / step_folder_name(2);
  std::string expected = sha256_hex(read_file(step / kManifestName));
  for (int number = 0; number < 2; ++number) {
    const std::string name = shard_file_name(number);
    if (fs::exists(step / name)) {
      expected += "\n" + name + " " + sha256_hex(read_file(step / name));
    }
  }
  EXPECT_EQ(read_file(step / kProvenanceName), expected);
}

TEST(Commit, WithoutProvenanceThereIsNoCheckpoint) {
  TempFolder folder;
  DiskOptions options = options_for(folder.path());
  options.provenance = [](const Manifest&, std::string_view) -> std::string {
    throw IoError("the key is gone");
  };
  const SaveOutcome outcome = save_state(options, small_state(1), 2);
  EXPECT_FALSE(outcome.durable);
  EXPECT_THAT(outcome.message, HasSubstr("the key is gone"));
  EXPECT_FALSE(fs::exists(folder.path() / step_folder_name(2)));
}

TEST(Commit, WritesNoDigestsWithoutProvenance) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 2).durable);
  const fs::path step = folder.path() / step_folder_name(2);
  EXPECT_FALSE(fs::exists(step / kProvenanceName));
  EXPECT_EQ(read_file(step / kManifestName).find("\"sha256\""), std::string::npos);
}

}  // namespace
}  // namespace trireme
