#include "src/train/start/run_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

RunConfig config_of(const fs::path& run, const fs::path& checkpoints = "") {
  RunConfig config;
  config.run_dir = run;
  config.checkpoint.dir = checkpoints;
  return config;
}

// Retention would remove such a run together with the checkpoint.
TEST(RunPlace, LiesInNoCheckpointOrDataset) {
  const TempFolder folder;
  const fs::path run = folder.path() / "run";
  const fs::path checkpoints = run / "checkpoints";
  const fs::path step = checkpoints / "step-00000010";
  const fs::path data = folder.path() / "data";
  fs::create_directories(step);
  fs::create_directories(data / "shards");
  write_file_durably(checkpoints / "GENERATION", "1\n");
  write_file_durably(step / "manifest.json", "{}");
  write_file_durably(data / "manifest.json", "{}");
  fs::create_directory_symlink(step, folder.path() / "link");
  const std::vector<std::pair<fs::path, const char*>> cases = {
      {step, "is a checkpoint"},
      {step / "a/b", "is a checkpoint"},
      {folder.path() / "link/a", "is a checkpoint"},
      {checkpoints / "step-00000020", "is a checkpoint"},
      {data, "is a dataset"},
      {data / "shards/a", "is a dataset"}};
  for (const auto& [path, words] : cases) {
    EXPECT_THAT(message_of<ConfigError>([&] { check_place_of_run(config_of(path)); }),
                AllOf(HasSubstr("run.dir: " + path.string()), HasSubstr(words)));
    EXPECT_THAT(
        message_of<ConfigError>([&] { check_place_of_run(config_of(run / "other", path)); }),
        AllOf(HasSubstr("checkpoint.dir: " + path.string()), HasSubstr(words)));
  }
  // A run's folder may contain its checkpoint folder, be the same folder or lie in it, and other
  // runs may lie beside or below it. Only steps are ever removed from a checkpoint folder.
  EXPECT_NO_THROW(check_place_of_run(config_of(checkpoints)));
  EXPECT_NO_THROW(check_place_of_run(config_of(checkpoints / "run")));
  EXPECT_NO_THROW(check_place_of_run(config_of(run / "second")));
}

TEST(RunPlace, ADatasetLiesInNoCheckpointsOrDataset) {
  const TempFolder folder;
  const fs::path checkpoints = folder.path() / "checkpoints";
  const fs::path step = checkpoints / "step-00000010";
  const fs::path data = folder.path() / "data";
  fs::create_directories(step);
  fs::create_directories(data / "shards");
  write_file_durably(checkpoints / "GENERATION", "1\n");
  write_file_durably(step / "manifest.json", "{}");
  write_file_durably(data / "manifest.json", "{}");
  for (const auto& [path, words] : std::vector<std::pair<fs::path, const char*>>{
           {checkpoints / "text", "is a folder of checkpoints"},
           {step / "text/", "is a checkpoint"},
           {data / "more", "is a dataset"},
           {data / "shards/", "is a dataset"}}) {
    EXPECT_THAT(message_of<ConfigError>([&] { check_place_of_dataset(path); }),
                AllOf(HasSubstr("--out: " + path.string()), HasSubstr(words)));
  }
  EXPECT_NO_THROW(check_place_of_dataset(data));  // packed again
  EXPECT_NO_THROW(check_place_of_dataset(data / ""));
  EXPECT_NO_THROW(check_place_of_dataset(folder.path() / "new"));
}

TEST(RunPlace, RelativePathsAreChecked) {
  const TempFolder folder;
  const fs::path data = folder.path() / "data";
  fs::create_directories(data / "shards");
  write_file_durably(data / "manifest.json", "{}");
  const fs::path before = fs::current_path();
  EXPECT_NO_THROW(check_place_of_run(config_of("no-such-folder")));
  fs::current_path(data);
  EXPECT_THAT(message_of<ConfigError>([] { check_place_of_run(config_of("no-such-folder/run")); }),
              HasSubstr("is a dataset"));
  fs::current_path(before);
}

}  // namespace
}  // namespace trireme
