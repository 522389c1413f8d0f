#include "src/report/mlflow_files.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MlflowTest : public testing::Test {
 protected:
  MlflowTest() {
    run_.path = folder_.path() / "run";
    run_.name = "a \"name\": <b>\n\xff";
    run_.metrics = parse_columns(
        "{\"step\": 1, \"loss\": 2.5, \"time\": 1000.5}\n"
        "{\"step\": 2, \"loss\": null, \"val_loss\": 2, \"time\": 1001}\n");
    run_.settings = parse_config("train:\n  steps: 5  # x\noptimizer:\n  betas: [0.9, 0.95]\n", "");
    what_.folder = folder_.path() / "store";
    what_.state = "finished";
    what_.user = "me";
  }

  fs::path export_run() {
    const fs::path out = mlflow_run_folder(run_, what_);
    left_out_ = write_mlflow_run(run_, what_, out, out);
    return out;
  }

  std::vector<std::string> left_out_;
  TempFolder folder_;
  RunFolder run_;
  MlflowExport what_;
};

TEST_F(MlflowTest, WritesTheFilesOfTheStore) {
  const fs::path out = export_run();
  EXPECT_EQ(read_file(out / "metrics/loss"), "1000500 2.5 1\n");
  EXPECT_EQ(read_file(out / "metrics/val_loss"), "1001000 2 2\n");
  EXPECT_EQ(read_file(out / "params/train.steps"), "5");
  EXPECT_EQ(read_file(out / "params/optimizer.betas"), "[0.9, 0.95]");
  EXPECT_EQ(std::distance(fs::directory_iterator(out / "params"), fs::directory_iterator()), 2);
  const std::string meta = read_file(out / "meta.yaml");
  for (const char* const line :
       {"\nend_time: 1001000\n", "\nstart_time: 1000500\n", "\nstatus: 3\n",
        "run_name: \"a \\\"name\\\": <b>\\n\\ufffd\"\n"}) {
    EXPECT_THAT(meta, HasSubstr(line));
  }
  EXPECT_THAT(read_file(out.parent_path() / "meta.yaml"), HasSubstr("name: \"trireme\"\n"));
}

TEST_F(MlflowTest, ASecondExportReplacesTheFirst) {
  const fs::path out = export_run();
  run_.metrics = parse_columns("{\"step\": 1, \"loss\": 7, \"time\": 1000}\n");
  what_.state = "running";
  EXPECT_EQ(export_run(), out);
  EXPECT_EQ(read_file(out / "metrics/loss"), "1000000 7 1\n");
  EXPECT_THAT(read_file(out / "meta.yaml"), HasSubstr("end_time: null\n"));
}

TEST_F(MlflowTest, MetricsOfSourcesAndValidationSetsLieInFolders) {
  run_.metrics =
      parse_columns(R"({"step": 1, "loss": 7, "sources": {"a": {"loss": 2.5, "epochs": 1}},)"
                    R"( "val_losses": {"a b": 3}, "time": 1000})");
  const fs::path out = export_run();
  EXPECT_EQ(read_file(out / "metrics/sources/a/loss"), "1000000 2.5 1\n");
  EXPECT_EQ(read_file(out / "metrics/val_losses/a b"), "1000000 3 1\n");
  EXPECT_TRUE(left_out_.empty());
  fs::remove_all(out / "metrics/sources/a");
  fs::create_directory(folder_.path() / "elsewhere");
  fs::create_symlink(folder_.path() / "elsewhere", out / "metrics/sources/a");
  EXPECT_THROW(export_run(), PolicyError);
  EXPECT_TRUE(fs::is_empty(folder_.path() / "elsewhere"));
}

TEST_F(MlflowTest, NamesOfMetricsCannotLeaveTheFolder) {
  run_.metrics = parse_columns(
      R"({"step": 1, "loss": 7, "val_losses": {"../../../../up": 1, "/etc": 2, "a\nb": 3, "": 4,)"
      R"( "x//y": 5, ".hidden": 6, "b/c": 7, "b": 8}, "time": 1000})");
  const fs::path out = export_run();
  EXPECT_THAT(left_out_, testing::IsSupersetOf({"val_losses/../../../../up", "val_losses/a\nb",
                                                "val_losses/.hidden", "val_losses/b/c"}));
  EXPECT_THAT(read_file(out / "tags/trireme.metrics_missing"), HasSubstr("../../up"));
  EXPECT_EQ(read_file(out / "metrics/val_losses/b"), "1000000 8 1\n");
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(folder_.path())) {
    EXPECT_NE(each.path().filename(), "up");
  }
}

TEST_F(MlflowTest, ASecondExportKeepsWhatOthersAdded) {
  const fs::path out = export_run();
  write_file_durably(out / "artifacts/note.txt", "kept");
  EXPECT_EQ(export_run(), out);
  EXPECT_EQ(read_file(out / "artifacts/note.txt"), "kept");
}

TEST_F(MlflowTest, AnExportIntoAnotherExperimentMovesTheRun) {
  const fs::path before = export_run();
  write_file_durably(before / "artifacts/note.txt", "kept");
  what_.experiment = "second";
  const fs::path out = mlflow_run_folder(run_, what_);
  ASSERT_NE(out, before);
  move_mlflow_run(what_, out);
  EXPECT_EQ(export_run(), out);
  EXPECT_FALSE(fs::exists(before));
  EXPECT_EQ(read_file(out / "artifacts/note.txt"), "kept");
  EXPECT_THAT(read_file(out / "meta.yaml"),
              HasSubstr("experiment_id: '" + out.parent_path().filename().string() + "'"));
  EXPECT_NO_THROW(move_mlflow_run(what_, out));
  fs::create_directory(before);
  EXPECT_THROW(move_mlflow_run(what_, out), ConfigError);
}

TEST_F(MlflowTest, ADamagedConfigurationIsSaidInATag) {
  run_.settings.clear();
  run_.config_error = "\"../../up\" is no key";
  const fs::path out = export_run();
  EXPECT_THAT(read_file(out / "tags/trireme.params_missing"), HasSubstr("../../up"));
  EXPECT_TRUE(fs::is_empty(out / "params"));
  EXPECT_FALSE(fs::exists(folder_.path() / "up"));
}

TEST_F(MlflowTest, RefusesARunWithoutStepsAndLinksInTheStore) {
  RunFolder empty;
  EXPECT_THROW(mlflow_run_folder(empty, what_), DataError);
  fs::create_directory(folder_.path() / "elsewhere");
  fs::create_symlink(folder_.path() / "elsewhere", what_.folder);
  EXPECT_THROW(export_run(), PolicyError);
}

}  // namespace
}  // namespace trireme
