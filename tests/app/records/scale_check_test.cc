// What `trireme scale` refuses of the runs that it finds in the folder of its study.
#include "src/app/study/scale_check.h"

#include "io/data/file_lock.h"
#include "tests/app/records/scale_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class ScaleCheckTest : public ScaleFolder {};

// Files of finished runs that were copied, exchanged, damaged or made by other commands.
TEST_F(ScaleCheckTest, RunsThatTheStudyDoesNotAskForAreRefused) {
  ASSERT_EQ(here("1,2").code, 0);
  take_calls();
  const auto refused = [&](int code, const std::vector<std::string>& words, const char* why) {
    fs::remove(path("study/study.json"));
    const CommandRun run = here("1,2,4", words);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr(why), HasSubstr("emove the folder"),
                               HasSubstr(path("study") + "/n000")));
    EXPECT_EQ(take_calls(), "") << "nothing was run";
  };
  refused(2, {"--weak"}, "\n  train.global_batch: 8, and the study asks for 16");
  refused(2, {"train.global_batch=16"}, "\n  train.global_batch: 8, and the study asks for 16");
  fs::remove(path("study/study.json"));
  const CommandRun shorter =
      scale_words({path("run.yaml"), "--nodes", "1,2", "--dir", path("study"), "--repeat", "1",
                   "--steps", "3", "--ranks-per-node", "1"});
  EXPECT_EQ(shorter.code, 2);
  EXPECT_THAT(shorter.err, HasSubstr("\n  train.steps: 8, and the study asks for 5"));
  write("run.yaml", read_file(path("run.yaml")) + "optimizer: {eps: 1}\n");
  refused(2, {}, "\n  optimizer.eps: not known, and the study asks for 1");
  write("run.yaml", kRunBase + std::string("train.steps: 1000\ntrain.global_batch: 8\n"
                                           "run.dir: runs/base\n"));
  fs::rename(path("study/n0001-r01"), path("other"));
  fs::rename(path("study/n0002-r01"), path("study/n0001-r01"));
  refused(2, {}, "\n  start.ranks: 2, and the study asks for 1");
  fs::rename(path("study/n0001-r01"), path("study/n0002-r01"));
  fs::create_symlink(path("other"), path("study/n0001-r01"));
  refused(65, {}, "is a symbolic link");
  fs::remove(path("study/n0001-r01"));
  write("study/n0001-r01", "not a run");
  refused(65, {}, "/n0001-r01 is no folder");
  EXPECT_EQ(read_file(path("study/n0001-r01")), "not a run");
}

// A copy would count as a repetition. The folder of the whole study may be another one.
TEST_F(ScaleCheckTest, CopiesOfOtherRunsAreRefused) {
  ASSERT_EQ(here("1,2").code, 0);
  const std::string config = read_file(path("study/n0002-r01/config.yaml"));
  write("study/n0002-r01/config.yaml", config + "run.dir: elsewhere/n0002-r01\n");
  EXPECT_EQ(here("1,2").code, 0);
  write("study/n0002-r01/config.yaml", config + "run.dir: " + path("study/n0001-r01") + "\n");
  const CommandRun run = here("1,2");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("/n0001-r01, and the study asks for n0002-r01: it is a copy "
                                       "of another run"),
                             HasSubstr("Remove the folder")));
}

TEST_F(ScaleCheckTest, ImpossibleTimesAreRefused) {
  ASSERT_EQ(here("1,2").code, 0);
  const std::string metrics = read_file(path("study/n0002-r01/metrics.jsonl"));
  for (const char* const time : {"0", "-5", "1e308", "null", "1e999"}) {
    std::string changed = metrics;
    changed.replace(changed.rfind("\"step_ms\":") + 10, 4, time);
    write("study/n0002-r01/metrics.jsonl", changed);
    const CommandRun run = here("1,2");
    EXPECT_EQ(run.code, 65) << time << run.err << run.out;
    EXPECT_THAT(run.err,
                HasSubstr("Remove the folder " + path("study/n0002-r01") + " to measure again"));
  }
  write("study/n0002-r01/metrics.jsonl", "garbage");
  EXPECT_THAT(here("1,2").err, HasSubstr("Remove the folder " + path("study/n0002-r01")));
}

TEST_F(ScaleCheckTest, MissingFilesAreRefusedWithTheFolderToRemove) {
  ASSERT_EQ(here("1,2").code, 0);
  take_calls();
  for (const char* const file : {"trace/rank-00000.json", "metrics.jsonl"}) {
    fs::rename(path("study/n0002-r01/" + std::string(file)), path("away"));
    const CommandRun run = here("1,2,4");
    EXPECT_EQ(run.code, 65) << run.err;
    EXPECT_THAT(run.err,
                AllOf(HasSubstr(path("study/n0002-r01/") + file + " is missing"),
                      HasSubstr("Remove the folder " + path("study/n0002-r01") + " to measure")));
    EXPECT_EQ(take_calls(), "") << "it is refused before anything runs";
    fs::rename(path("away"), path("study/n0002-r01/" + std::string(file)));
  }
}

TEST_F(ScaleCheckTest, TheSameFileByAnotherPathIsTheSameConfiguration) {
  ASSERT_EQ(here("1,2").code, 0);
  take_calls();
  const std::vector<std::string> rest = {"--nodes",          "1,2", "--dir",   path("study"),
                                         "--repeat",         "1",   "--steps", "6",
                                         "--ranks-per-node", "1"};
  fs::create_directory(path("sub"));
  std::vector<std::string> words = {path("sub/../run.yaml")};
  words.insert(words.end(), rest.begin(), rest.end());
  const CommandRun same = scale_words(words);
  EXPECT_EQ(same.code, 0) << same.err;
  write("run.yaml", read_file(path("run.yaml")) + "optimizer: {eps: 1}\n");
  const CommandRun changed = here("1,2,4");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("holds a study with other configuration"));
  EXPECT_EQ(take_calls(), "") << "it is refused before anything runs";
}

TEST_F(ScaleCheckTest, AnotherScaleOnTheFolderIsRefused) {
  ASSERT_EQ(here("1").code, 0);
  const auto lock = FileLock::try_take(path("study/.scale.lock"));
  const CommandRun run = here("1");
  EXPECT_EQ(run.code, 77);
  EXPECT_THAT(run.err, HasSubstr("another trireme scale is at work on " + path("study")));
}

}  // namespace
}  // namespace trireme
