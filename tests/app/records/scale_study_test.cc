// The runs of a scaling study: their order, their arguments, and what keeps two studies apart.
#include "src/app/study/scale_study.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/environment_variables.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ScaleStudyTest : public testing::Test {
 protected:
  void SetUp() override {
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    std::ofstream(folder_.path() / "run.yaml")
        << "model: {family: gpt2, layers: 2, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
           "data: {train: data, sequence: 16}\n"
           "train: {steps: 1000, global_batch: 8, micro_batch: 1, precision: fp32}\n"
           "run: {dir: runs/base}\n";
  }
  ScaleOptions options() const {
    ScaleOptions options;
    options.config = (folder_.path() / "run.yaml").string();
    options.folder = (folder_.path() / "study").string();
    options.nodes = {1, 2, 4};
    options.ranks_per_node = 1;
    options.repetitions = 2;
    options.steps = 12;
    return options;
  }
  static std::vector<std::string> names_of(const ScaleStudy& study) {
    std::vector<std::string> names;
    for (const ScaleRun& run : study.runs()) {
      names.push_back(run.folder.filename());
    }
    return names;
  }

  TempFolder folder_;
  EnvironmentVariables variables_;
};

TEST_F(ScaleStudyTest, RepetitionsAlternateTheirDirection) {
  ScaleOptions unsorted = options();
  unsorted.nodes = {4, 1, 2, 1};
  const ScaleStudy study(unsorted);
  EXPECT_THAT(names_of(study), ElementsAre("n0001-r01", "n0002-r01", "n0004-r01", "n0004-r02",
                                           "n0002-r02", "n0001-r02"));
  EXPECT_EQ(study.model(), "run");
  EXPECT_EQ(study.runs()[0].job_file(), study.runs()[0].folder.string() + ".job");
  EXPECT_FALSE(study.runs()[0].done());
}

TEST_F(ScaleStudyTest, AStrongStudyKeepsTheBatchAndAWeakOneKeepsItPerNode) {
  const ScaleStudy strong(options());
  EXPECT_EQ(strong.global_batch(4), 8);
  ScaleOptions weak = options();
  weak.weak = true;
  weak.folder += "-weak";
  weak.nodes = {2, 4};
  const ScaleStudy study(weak);
  EXPECT_EQ(study.global_batch(2), 8) << "on the fewest nodes";
  EXPECT_EQ(study.global_batch(4), 16);
  EXPECT_THAT(study.arguments_of(study.runs()[1]), Contains("train.global_batch=16"));
}

TEST_F(ScaleStudyTest, RunsSaveNothingAndKeepTheScheduleOfTheWholeRun) {
  ScaleOptions own = options();
  own.arguments = {"optimizer.lr=0.5"};
  const ScaleStudy study(own);
  const std::vector<std::string> arguments = study.arguments_of(study.runs()[1]);
  for (const char* const each :
       {"optimizer.lr=0.5", "train.steps=14", "optimizer.schedule.steps=1000", "run.trace=10",
        "checkpoint.dir=", "train.eval_every=0", "train.threads=1"}) {
    EXPECT_THAT(arguments, Contains(each));
  }
  EXPECT_THAT(arguments, Contains("run.dir=" + study.runs()[1].folder.string()));
  ScaleOptions on_cluster = options();
  on_cluster.cluster = "site";
  on_cluster.folder += "-slurm";
  const ScaleStudy other(on_cluster);
  EXPECT_THAT(other.arguments_of(other.runs()[0]), Not(Contains("train.threads=1")))
      << "nodes do not share their cores";
}

TEST_F(ScaleStudyTest, ImpossibleRunsAreRefusedBeforeTheFirst) {
  ScaleOptions three = options();
  three.nodes = {1, 3};
  EXPECT_THAT(message_of<ConfigError>([&] { const ScaleStudy study(three); }),
              HasSubstr("on 3 nodes: "));
  ScaleOptions weak = options();
  weak.weak = true;
  weak.nodes = {3, 4};
  weak.arguments = {"train.global_batch=6", "parallel.dp=1"};
  EXPECT_THAT(message_of<ConfigError>([&] { const ScaleStudy study(weak); }), HasSubstr("on "));
  EXPECT_FALSE(std::filesystem::exists(three.folder)) << "nothing was made";
}

TEST_F(ScaleStudyTest, AFolderHoldsOneStudy) {
  { const ScaleStudy first(options()); }
  ScaleOptions more = options();
  more.nodes.push_back(8);
  more.repetitions = 3;
  EXPECT_NO_THROW(ScaleStudy{more}) << "nodes and repetitions may be added";
  ScaleOptions longer = options();
  longer.steps = 13;
  EXPECT_THAT(message_of<ConfigError>([&] { const ScaleStudy study(longer); }),
              HasSubstr("holds a study with other steps: 12, and now 13"));
  ScaleOptions in_run = options();
  in_run.folder = (folder_.path() / "run").string();
  std::filesystem::create_directory(in_run.folder);
  std::ofstream(in_run.folder + "/config.yaml") << "{}";
  EXPECT_THAT(message_of<ConfigError>([&] { const ScaleStudy study(in_run); }),
              HasSubstr("is the folder of a run, and no study"));
  std::ofstream(folder_.path() / "study/study.json") << "[[[";
  EXPECT_THAT(message_of<DataError>([&] { const ScaleStudy study(options()); }),
              HasSubstr("study.json"));
  std::ofstream(folder_.path() / "study/study.json") << "[]";
  EXPECT_THAT(message_of<ConfigError>([&] { const ScaleStudy study(options()); }),
              HasSubstr("holds a study with other"));
}

}  // namespace
}  // namespace trireme
