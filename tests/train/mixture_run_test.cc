// Tests runs that train on several datasets, or evaluate several. Ranks are threads.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class MixtureRun : public testing::Test {
 protected:
  MixtureRun()
      : other_(pack_documents(run_.folder(), "other", {std::string(700, 'x')})),
        mixed_(fmt::format("data.train=[{{path: {}, weight: 3}}, {{path: {}, weight: 1}}]",
                           run_.data().string(), other_.string())) {}

  // Returns what must not depend on ranks and restarts, of every line.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const nlohmann::json& line : run_.metrics()) {
      lines.push_back(line.at("loss_bits").dump() + line.at("sources").dump());
    }
    return lines;
  }
  std::vector<std::string> lines_of(const std::vector<std::string>& more, int ranks) {
    std::filesystem::remove_all(run_.dir());
    run_.train(more, ranks);
    return lines();
  }

  ThreadRun run_;
  std::filesystem::path other_;
  std::string mixed_;
};

TEST_F(MixtureRun, HasTheSameBitsOnAnyRanksAndAfterARestart) {
  const std::vector<std::string> one = lines_of({mixed_}, 1);
  ASSERT_EQ(one.size(), 3U);
  const nlohmann::json last = run_.metrics().back();
  EXPECT_EQ(last.at("sources").at("data").at("tokens"), 18 * 8);
  EXPECT_EQ(last.at("sources").at("other").at("tokens"), 6 * 8);
  EXPECT_EQ(last.at("sources").at("other").at("epochs"), 6 / 87.0);
  // The window has two steps of four sequences, of which one in four is from the other source.
  EXPECT_NEAR(last.at("loss_mean").get<double>(),
              0.75 * last.at("sources").at("data").at("loss").get<double>() +
                  0.25 * last.at("sources").at("other").at("loss").get<double>(),
              1e-5);
  EXPECT_EQ(lines_of({mixed_, "parallel.dp=2"}, 2), one);
  EXPECT_EQ(lines_of({mixed_, "parallel.dp=2", "parallel.zero=2"}, 2), one);
  EXPECT_EQ(lines_of({mixed_, "parallel.dp=4"}, 4), one);
  const std::vector<std::string> whole = lines_of({mixed_, "train.log_every=4"}, 1);
  std::filesystem::remove_all(run_.dir());
  run_.signal = SIGTERM;
  EXPECT_EQ(run_.train({mixed_, "train.log_every=4", "parallel.dp=2"}, 2).step, 1);
  run_.signal = 0;
  run_.train({mixed_, "train.log_every=4"}, 1);
  EXPECT_EQ(lines(), whole) << "the windows of the sources are in the checkpoint";
}

TEST_F(MixtureRun, PipelinesReportTheirSources) {
  const std::vector<std::string> one = lines_of({mixed_, "model.layers=2"}, 1);
  EXPECT_EQ(lines_of({mixed_, "model.layers=2", "parallel.pp=2"}, 2), one);
}

TEST_F(MixtureRun, RefusesToResumeWithOtherWeightsOrData) {
  run_.train({mixed_, "train.steps=2", "optimizer.schedule.steps=6"});
  const std::string other =
      fmt::format("data.train=[{{path: {}, weight: 2}}, {{path: {}, weight: 1}}]",
                  run_.data().string(), other_.string());
  EXPECT_THAT(message_of<ConfigError>([&] {
                run_.train({other, "optimizer.schedule.steps=6"});
              }),
              HasSubstr("data.mixture: checkpoint \"data 3, other 1\", run \"data 2, other 1\""));
  EXPECT_THAT(message_of<ConfigError>([&] { run_.train({"optimizer.schedule.steps=6"}); }),
              AllOf(HasSubstr("data.mixture"), HasSubstr("data.digest")));
  EXPECT_NO_THROW(
      run_.train({other, "optimizer.schedule.steps=6", "checkpoint.allow_change=[data.mixture]"}));
}

TEST_F(MixtureRun, RefusesWhatDoesNotGoTogether) {
  const std::string little =
      fmt::format("data.train=[{{path: {}, weight: 1}}, {{path: {}, weight: 1, epochs: 1}}]",
                  run_.data().string(), other_.string());
  EXPECT_THAT(message_of<ConfigError>([&] {
                run_.train({little, "train.steps=44"});
              }),
              HasSubstr("data.train.other: the run takes 88 samples of"));
  const std::string short_one = pack_documents(run_.folder(), "short", {"abc"}).string();
  EXPECT_THAT(message_of<DataError>([&] {
                run_.train({fmt::format("data.train=[{}, {}]", run_.data().string(), short_one)});
              }),
              HasSubstr("has no sample of 8 tokens"));
}

TEST_F(MixtureRun, EvaluatesEverySet) {
  run_.train({fmt::format("data.validation=[{{name: own, path: {}}}, {{name: x, path: {}}}]",
                          run_.data().string(), other_.string()),
              "train.eval_every=3", "train.eval_samples=5", "train.log_every=3"});
  const auto lines = run_.metrics();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].at("val_losses").at("own"), lines[1].at("val_loss"));
  EXPECT_NE(lines[1].at("val_losses").at("x"), lines[1].at("val_loss"));
  EXPECT_FALSE(lines[1].contains("sources"));
}

}  // namespace
}  // namespace trireme
