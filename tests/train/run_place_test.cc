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
    EXPECT_THAT(message_of<ConfigError>([&] { check_place_of_dataset("--out", path); }),
                AllOf(HasSubstr("--out: " + path.string()), HasSubstr(words)));
  }
  EXPECT_NO_THROW(check_place_of_dataset("--out", data));  // packed again
  EXPECT_NO_THROW(check_place_of_dataset("--out", data / ""));
  EXPECT_NO_THROW(check_place_of_dataset("--out", folder.path() / "new"));
}

TEST(RunPlace, AResultReplacesNothingOfADatasetACheckpointARunOrAStudy) {
  const TempFolder folder;
  const fs::path run = folder.path() / "study/n0001-r01";
  const fs::path step = run / "checkpoints/step-00000010";
  const fs::path data = folder.path() / "data";
  const fs::path other = folder.path() / "checkpoints";
  fs::create_directories(step);
  fs::create_directories(other);
  fs::create_directories(data / "shards");
  fs::create_directories(run / "logs");
  for (const fs::path& file :
       {data / "manifest.json", step / "manifest.json", step.parent_path() / "GENERATION",
        other / "GENERATION", run / "config.yaml", run / "logs/rank-00000.jsonl",
        folder.path() / "study/study.json"}) {
    write_file_durably(file, "1");
  }
  fs::create_symlink(data / "manifest.json", folder.path() / "link");
  for (const auto& [file, words] : std::vector<std::pair<fs::path, const char*>>{
           {data / "manifest.json", "which is a dataset"},
           {data / "shards/00000.h5", "which is a dataset"},
           {folder.path() / "link", "which is a dataset"},
           {step / "manifest.json", "which is a checkpoint"},
           {step.parent_path() / "new.json", "belongs to the run"},
           {other / "LATEST", "belongs to the checkpoints"},
           {run / "config.yaml", "belongs to the run"},
           {run / "metrics.jsonl", "belongs to the run"},
           {run / "logs/new.json", "belongs to the run"},
           {folder.path() / "study/study.json", "belongs to the study"},
           {folder.path() / "study/n0001-r01.job", "belongs to the study"}}) {
    EXPECT_THAT(problem_with_place_of_result(file), HasSubstr(words)) << file;
  }
  for (const fs::path& file :
       {run / "report.html", folder.path() / "study/strong.json", folder.path() / "config.yaml"}) {
    EXPECT_EQ(problem_with_place_of_result(file), "");
  }
}

TEST(RunPlace, TheMetricsForNodeExporterLieInNoDatasetAndNoCheckpoint) {
  const TempFolder folder;
  const fs::path data = folder.path() / "data";
  fs::create_directories(data / "shards");
  write_file_durably(data / "manifest.json", "{}");
  RunConfig config = config_of(folder.path() / "run");
  for (const fs::path& path : {data, data / "x.prom", data / "shards"}) {
    config.metrics.openmetrics = path;
    EXPECT_THAT(
        message_of<ConfigError>([&] { check_place_of_run(config); }),
        AllOf(HasSubstr("metrics.openmetrics: " + path.string()), HasSubstr("which is a dataset")));
  }
  for (const fs::path& path : {folder.path(), folder.path() / "run/x.prom"}) {
    config.metrics.openmetrics = path;
    EXPECT_NO_THROW(check_place_of_run(config));
  }
  for (const char* const path : {"run/checkpoints", "run/checkpoints/x.prom"}) {
    config.metrics.openmetrics = folder.path() / path;
    EXPECT_THAT(message_of<ConfigError>([&] { check_place_of_run(config); }),
                HasSubstr("lies in the run's own folder of checkpoints"));
  }
}

TEST(RunPlace, StudiesAndAcceptancesHaveFoldersOfTheirOwn) {
  const TempFolder folder;
  const fs::path run = folder.path() / "run";
  const fs::path step = run / "checkpoints/step-00000010";
  const fs::path data = folder.path() / "data";
  fs::create_directories(step);
  fs::create_directories(data / "shards");
  fs::create_directories(folder.path() / "study");
  fs::create_directories(folder.path() / "acceptance");
  for (const fs::path& file :
       {data / "manifest.json", step / "manifest.json", step.parent_path() / "GENERATION",
        run / "config.yaml", run / "DONE", folder.path() / "study/study.json",
        folder.path() / "acceptance/.accept.lock"}) {
    write_file_durably(file, "1");
  }
  for (const auto& [path, words] : std::vector<std::pair<fs::path, const char*>>{
           {data, "is a dataset"},
           {data / "", "is a dataset"},
           {data / "new", "which is a dataset"},
           {step, "is a checkpoint"},
           {run / "checkpoints", "is a folder of checkpoints"},
           {run / "checkpoints/new", "which is a folder of checkpoints"},
           {run, "is the folder of a run"},
           {run / "logs/new", "belongs to the run"}}) {
    EXPECT_THAT(problem_with_place_of_study(path), HasSubstr(words)) << path;
    EXPECT_THAT(problem_with_place_of_acceptance(path), HasSubstr(words)) << path;
  }
  const fs::path study = folder.path() / "study";
  const fs::path acceptance = folder.path() / "acceptance";
  EXPECT_EQ(problem_with_place_of_study(study), "") << "it is continued";
  EXPECT_EQ(problem_with_place_of_study(acceptance), "is the folder of an acceptance");
  EXPECT_EQ(problem_with_place_of_acceptance(acceptance), "") << "it is repeated";
  EXPECT_EQ(problem_with_place_of_acceptance(study), "is the folder of a study");
  EXPECT_EQ(problem_with_place_of_acceptance(run / "new"), "");
}

TEST(RunPlace, AnAcceptanceKeepsItsResults) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "acc");
  for (const char* name : {"acc/.accept.lock", "acc/n1-r01-0.json", "acc/n1-n2-l03-10.json",
                           "acc/other.json", "acceptance.json"}) {
    write_file_durably(folder.path() / name, "1");
  }
  for (const char* name :
       {"acc/.accept.lock", "acc/acceptance.json", "acc/n1-r01-0.json", "acc/n1-n2-l03-10.json"}) {
    EXPECT_THAT(problem_with_place_of_result(folder.path() / name),
                HasSubstr("belongs to the acceptance in"));
  }
  EXPECT_EQ(problem_with_place_of_result(folder.path() / "acc/n3-r01-0.json"), "")
      << "a benchmark of the acceptance writes it";
  EXPECT_EQ(problem_with_place_of_result(folder.path() / "acc/other.json"), "");
  EXPECT_EQ(problem_with_place_of_result(folder.path() / "acceptance.json"), "")
      << "the file of -J, which lies elsewhere";
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
