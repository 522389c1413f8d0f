#include "src/plan/measured_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/plan/calibration.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

MeasuredStep example() {
  MeasuredStep step;
  step.name = "first";
  step.model = {.layers = 6,
                .hidden = 384,
                .heads = 6,
                .kv_heads = 2,
                .head_dim = 64,
                .ffn = 1024,
                .vocab = 257,
                .sequence = 256,
                .gated = true,
                .tied = false,
                .dropout = true};
  step.precision = PlanPrecision::fp32;
  step.layout.dp = 2;
  step.layout.pp = 2;
  step.layout.virtual_stages = 2;
  step.layout.schedule = PipelineSchedule::interleaved;
  step.layout.micro_batch = 2;
  step.layout.micro_batches = 4;
  step.layout.zero = 1;
  step.layout.recompute = PlanRecompute::selective;
  step.steps = 10;
  step.measured = {.compute = 0.1,
                   .pipeline = 0.02,
                   .replicas = 0.01,
                   .update = 0.005,
                   .data = 0.001,
                   .checkpoint = 0.002};
  step.memory_bytes = 1e8;
  return step;
}

TEST(MeasuredStep, PartsAddUpToTheStep) {
  const StepSplit split = example().measured;
  EXPECT_DOUBLE_EQ(split.total(), 0.138);
  EXPECT_DOUBLE_EQ(split.predictable(), 0.135);
  EXPECT_EQ(StepSplit::of(split.parts()), split);
}

TEST(MeasuredStep, EveryTermOfAPredictionIsInOnePart) {
  StepTime time{.products = 1, .head = 2, .attention = 3, .kernels = 4, .recompute = 5};
  time.tensor = 6;
  time.accumulate = 7;
  time.transfer = 8;
  time.bubble = 9;
  time.gradients = 10;
  time.parameters = 11;
  time.optimizer = 12;
  time.checkpoint = 13;
  const StepSplit split = split_of(time);
  EXPECT_EQ(split.compute, 22);
  EXPECT_EQ(split.pipeline, 17);
  EXPECT_EQ(split.replicas, 21);
  EXPECT_DOUBLE_EQ(split.total(), time.total());
}

TEST(MeasuredStep, ComesBackFromJson) {
  const MeasuredStep step = example();
  const nlohmann::json json = nlohmann::json::parse(to_json(step).dump());
  const MeasuredStep back = measured_step(json);
  EXPECT_EQ(to_json(back), to_json(step));
  EXPECT_EQ(back.layout, step.layout);
  EXPECT_EQ(back.measured, step.measured);
  EXPECT_EQ(back.precision, step.precision);
}

TEST(MeasuredStep, DamagedJsonIsRefusedByField) {
  const nlohmann::json good = nlohmann::json::parse(to_json(example()).dump());
  const auto refused = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(pointer)] = nlohmann::json::parse(value.dump());
    return message_of<DataError>([&] { (void)measured_step(json); });
  };
  EXPECT_THAT(refused("/model/hidden", 0), HasSubstr("hidden"));
  EXPECT_THAT(refused("/model/hidden", 1e300), HasSubstr("hidden"));
  EXPECT_THAT(refused("/model/vocab", std::int64_t{1} << 40), HasSubstr("vocab"));
  EXPECT_THAT(refused("/model/gated", "yes"), HasSubstr("gated"));
  EXPECT_THAT(refused("/layout/pp", 1 << 20), HasSubstr("pp"));
  EXPECT_THAT(refused("/layout/pp", 16), HasSubstr("layout"));
  EXPECT_THAT(refused("/layout/tp", 4), HasSubstr("layout"));
  EXPECT_THAT(refused("/layout/schedule", "backwards"), HasSubstr("layout"));
  EXPECT_THAT(refused("/layout/recompute", "some"), HasSubstr("recompute"));
  EXPECT_THAT(refused("/layout/micro_batches", 3), HasSubstr("layout"));
  EXPECT_THAT(refused("/precision", "fp4"), HasSubstr("precision"));
  EXPECT_THAT(refused("/measured/compute", -1), HasSubstr("compute"));
  EXPECT_THAT(refused("/measured/compute", nullptr), HasSubstr("compute"));
  EXPECT_THAT(refused("/measured", nlohmann::json::array()), HasSubstr("measured"));
  EXPECT_THAT(refused("/memory_bytes", 1e30), HasSubstr("memory_bytes"));
  nlohmann::json idle = good;
  for (auto& part : idle["measured"]) {
    part = 0;
  }
  EXPECT_THAT(message_of<DataError>([&] { (void)measured_step(idle); }),
              HasSubstr("less than 1e-06 s"));
  EXPECT_THAT(message_of<DataError>([&] { (void)measured_step(nlohmann::json::array()); }),
              HasSubstr("name"));
}

}  // namespace
}  // namespace trireme
