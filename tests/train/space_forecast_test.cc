#include "src/train/start/space_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/model_size.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

RunConfig run_of(std::int64_t steps, std::int64_t every, int keep, std::int64_t keep_every) {
  RunConfig config;
  config.model.layers = 2;
  config.model.hidden = 64;
  config.model.heads = 2;
  config.model.vocab = 512;
  config.model.context = 32;
  config.model.complete();
  config.train.steps = steps;
  config.checkpoint.every = {every, ""};
  config.checkpoint.keep = keep;
  config.checkpoint.keep_every = keep_every;
  return config;
}

TEST(SpaceForecast, CountsWhatStandsAtOnce) {
  const SpaceForecast some = forecast_space(run_of(1000, 100, 2, 0));
  EXPECT_EQ(some.checkpoint_bytes, 12 * parameter_count(run_of(1, 1, 2, 0).model));
  EXPECT_EQ(some.newest, 3);  // those kept and the one being written
  EXPECT_EQ(some.milestones, 0);
  EXPECT_EQ(some.needed_bytes(), 3 * some.checkpoint_bytes);
  EXPECT_EQ(forecast_space(run_of(200, 100, 5, 0)).newest, 2);
  EXPECT_EQ(forecast_space(run_of(200, 0, 5, 0)).newest, 1);  // at the end only
}

TEST(SpaceForecast, CountsMilestones) {
  EXPECT_EQ(forecast_space(run_of(1000, 10, 2, 100)).milestones, 10);
  EXPECT_EQ(forecast_space(run_of(1000, 100, 2, 150)).milestones, 3);  // 300, 600, 900
  EXPECT_EQ(forecast_space(run_of(300, 100, 2, 100)).milestones, 0);   // among the newest
}

TEST(SpaceForecast, CountsTheBestSteps) {
  const auto best_of = [](std::int64_t steps, std::int64_t every, std::int64_t eval_every,
                          int keep_best) {
    RunConfig config = run_of(steps, every, 2, 0);
    config.data.validation = {{.name = "v", .path = "validation"}};
    config.train.eval_every = eval_every;
    config.checkpoint.keep_best = keep_best;
    const SpaceForecast forecast = forecast_space(config);
    EXPECT_EQ(forecast.needed_bytes(),
              (forecast.newest + forecast.best) * forecast.checkpoint_bytes);
    return forecast.best;
  };
  EXPECT_EQ(best_of(1000, 100, 50, 0), 0);
  EXPECT_EQ(best_of(1000, 100, 50, 3), 3);
  EXPECT_EQ(best_of(100, 0, 0, 3), 0);      // the last step, which is saved anyway
  EXPECT_EQ(best_of(100, 0, 40, 3), 2);     // 40 and 80 beside the last
  EXPECT_EQ(best_of(300, 100, 100, 3), 0);  // all three stand there as the newest
  EXPECT_EQ(best_of(300, 100, 60, 9), 4);   // 60, 120, 180, 240 beside 100, 200, 300
}

TEST(SpaceForecast, CountsTheStateOfTheOptimizer) {
  RunConfig config = run_of(100, 10, 2, 0);
  config.optimizer.name = "sgd";
  EXPECT_EQ(forecast_space(config).checkpoint_bytes, 8 * parameter_count(config.model));
  config.optimizer.ema = 0.999F;
  EXPECT_EQ(forecast_space(config).checkpoint_bytes, 12 * parameter_count(config.model));
}

TEST(SpaceForecast, SaysWhatLacks) {
  SpaceForecast forecast;
  forecast.checkpoint_bytes = std::int64_t{10} << 30;
  forecast.newest = 3;
  forecast.milestones = 2;
  EXPECT_EQ(forecast.lack("/c"), "");  // the free space is unknown
  forecast.free_bytes = std::int64_t{50} << 30;
  EXPECT_EQ(forecast.lack("/c"), "");
  forecast.free_bytes = std::int64_t{49} << 30;
  EXPECT_THAT(forecast.lack("/c"), AllOf(HasSubstr("/c"), HasSubstr("10 GiB"), HasSubstr("50 GiB"),
                                         HasSubstr("49 GiB are free"), HasSubstr("keep_every")));
  forecast.stored_bytes = std::int64_t{10} << 30;
  EXPECT_EQ(forecast.lack("/c"), "");
  forecast.quota_bytes = std::int64_t{39} << 30;
  EXPECT_THAT(forecast.lack("/c"), HasSubstr("39 GiB of the quota are left"));
  forecast.best = 1;
  EXPECT_THAT(forecast.lack("/c"),
              AllOf(HasSubstr("and 1 that checkpoint.keep_best keeps: 60 GiB"),
                    HasSubstr("lower checkpoint.keep or checkpoint.keep_best")));
}

TEST(SpaceForecast, MeasuresAFolderThatIsNotThereYet) {
  const TempFolder folder;
  RunConfig config = run_of(10, 1, 2, 0);
  config.checkpoint.dir = folder.path() / "not/yet";
  const SpaceForecast forecast = measured_space(config);
  EXPECT_GT(forecast.free_bytes.value(), 0);
  EXPECT_EQ(forecast.stored_bytes, 0);
}

}  // namespace
}  // namespace trireme
