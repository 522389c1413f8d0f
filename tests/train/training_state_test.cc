#include "src/train/engine/training_state.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

TrainingCounters at(std::int64_t step, std::vector<DataWindow> left_out = {}) {
  TrainingCounters counters;
  counters.step = step;
  counters.updates = step;
  counters.rewinds = static_cast<std::int64_t>(left_out.size());
  counters.left_out = std::move(left_out);
  return counters;
}

TEST(TrainingCounters, ComeBackFromText) {
  TrainingCounters counters = at(120, {{100, 100, 31}, {110, 141, 7}});
  counters.updates = 118;
  counters.skipped_steps = 2;
  counters.skipped_in_a_row = 1;
  counters.rewinds = 5;
  counters.history = {{3.0000000000000004, 1.0 / 3}, {1e-300, 12345678.9012345}};
  counters.loss_window = {2.0000000000000004, 3};
  counters.validation = {{{100, 1.0 / 3}, {110, 0.5}}, 1.0 / 3, 1, {{4.5, std::nan("")}}};
  counters.loss_scale = {0x1p20, 17, 2};
  counters.fp8["a.weight"] = {{{1.0F / 3, 448}, {1e-30F}, {}}};
  const TrainingCounters back = counters_from_json(parse_json(to_json(counters).dump()));
  EXPECT_EQ(back.loss_scale, counters.loss_scale);
  EXPECT_EQ(back.fp8, counters.fp8);
  EXPECT_EQ(back.loss_window, counters.loss_window);
  EXPECT_EQ(back.validation.best, counters.validation.best);
  EXPECT_EQ(back.validation.reference, 1.0 / 3);
  EXPECT_EQ(back.validation.without_improvement, 1);
  ASSERT_TRUE(back.validation.pending);
  EXPECT_EQ(back.validation.pending->loss, 4.5);
  EXPECT_TRUE(std::isnan(back.validation.pending->grad_norm));
  EXPECT_EQ(back.step, 120);
  EXPECT_EQ(back.updates, 118);
  EXPECT_EQ(back.skipped_steps, 2);
  EXPECT_EQ(back.skipped_in_a_row, 1);
  EXPECT_EQ(back.rewinds, 5);
  EXPECT_EQ(back.left_out, counters.left_out);
  // The numbers must be equal bit by bit.
  EXPECT_EQ(back.history, counters.history);
  EXPECT_EQ(back.batches(), 158);
}

TEST(TrainingCounters, AMeanLeavesOutWhatIsNotFinite) {
  LossWindow window;
  EXPECT_TRUE(std::isnan(window.mean()));
  for (const double loss : {1.0, std::nan(""), 2.0, 1.0 / 0.0, 6.0}) {
    window.add(loss);
  }
  EXPECT_EQ(window.mean(), 3.0);
}

TEST(TrainingCounters, TellRetentionWhatToKeep) {
  TrainingCounters counters = at(30);
  nlohmann::json extra = {{"tokenizer", "bytes"}, {"keep_steps", {7}}};
  put_counters(counters, extra);
  EXPECT_FALSE(extra.contains("keep_steps"));
  counters.validation.best = {{20, 1.5}, {10, 1.75}};
  put_counters(counters, extra);
  EXPECT_EQ(extra["keep_steps"], nlohmann::json({20, 10}));
  EXPECT_EQ(extra["tokenizer"], "bytes");
  const nlohmann::json saved = parse_json(extra["counters"].dump());
  EXPECT_EQ(counters_from_json(saved).validation.best, counters.validation.best);
}

TEST(ValidationHistory, RemembersTheBestAndCountsWhatIsNoBetter) {
  ValidationHistory history;
  history.pending = {{1, 1}};
  const auto note = [&](std::int64_t step, double loss) {
    note_evaluation(history, {step, loss}, 2, 0.25);
  };
  note(10, 3.0);
  EXPECT_FALSE(history.pending);
  note(20, 2.0);
  note(30, 1.875);  // among the best, but no improvement of more than 0.25
  EXPECT_EQ(history.best, (std::vector<EvaluatedStep>{{30, 1.875}, {20, 2.0}}));
  EXPECT_EQ(history.reference, 2.0);
  EXPECT_EQ(history.without_improvement, 1);
  note(40, std::nan(""));
  EXPECT_EQ(history.without_improvement, 1);
  note(50, 2.0);  // equal losses: the older step stays
  EXPECT_EQ(history.without_improvement, 2);
  EXPECT_TRUE(history.is_best(20) && !history.is_best(50));
  note(60, 1.5);
  EXPECT_EQ(history.without_improvement, 0);
  EXPECT_EQ(history.best, (std::vector<EvaluatedStep>{{60, 1.5}, {30, 1.875}}));
  note_evaluation(history, {70, 1.0}, 0, 0);
  EXPECT_TRUE(history.best.empty());
}

TEST(TrainingCounters, ComeFromOlderCheckpoints) {
  const TrainingCounters counters = counters_from_json(
      parse_json(R"({"step": 7, "updates": 6, "skipped_steps": 1, "skipped_in_a_row": 0})"));
  EXPECT_EQ(counters.step, 7);
  EXPECT_EQ(counters.batches(), 7);
  EXPECT_TRUE(counters.history.losses.empty());
}

TEST(TrainingCounters, StandWhereTheirCheckpointStands) {
  CheckpointMeta meta;
  meta.step = 6;
  EXPECT_THROW((void)counters_of(meta), DataError);
  (*meta.extra)["counters"] = parse_json(to_json(at(6)).dump());
  EXPECT_EQ(counters_of(meta).step, 6);
  meta.step = std::int64_t{1} << 60;
  EXPECT_THROW((void)counters_of(meta), DataError);
}

TEST(TrainingCounters, RefuseWhatIsImpossible) {
  const std::string base = R"("step": 7, "updates": 6, "skipped_steps": 1, "skipped_in_a_row": 0)";
  for (const char* more :
       {R"("rewinds": -1, "left_out": [])",
        R"("rewinds": 1)",
        R"("rewinds": 1, "left_out": 3)",
        R"("rewinds": 1, "left_out": [3])",
        R"("rewinds": 1, "left_out": [{"step": 1, "first": 1, "count": 0}])",
        R"("rewinds": 1, "left_out": [{"step": 1, "first": 1, "count": 1152921504606846976}])",
        R"("left_out": [{"step": 1, "first": 1, "count": 5}])",
        R"("rewinds": 2, "left_out": [])",
        R"("rewinds": 1, "left_out": [{"step": 8, "first": 8, "count": 5}])",
        R"("rewinds": 1, "left_out": [{"step": 1, "first": 2, "count": 5}])",
        R"("history": [])",
        R"("history": {"losses": [1], "grad_norms": []})",
        R"("history": {"losses": [1], "grad_norms": [null]})",
        R"("history": {"losses": ["1"], "grad_norms": [1]})",
        R"("loss_scale": 8)",
        R"("fp8": 1)",
        R"("fp8": {"w": []})",
        R"("fp8": {"w": [[1], [1], 1]})",
        R"("fp8": {"w": [[1], [1], [-1]]})",
        R"("fp8": {"w": [[1], [1], [null]]})",
        R"("loss_scale": {"scale": 3, "steps": 0, "overflows": 0})",
        R"("loss_scale": {"scale": 0.5, "steps": 0, "overflows": 0})",
        R"("loss_scale": {"scale": 8, "steps": -1, "overflows": 0})",
        R"("loss_scale": {"scale": 8, "steps": 0, "overflows": 2})"}) {
    EXPECT_THROW((void)counters_from_json(parse_json("{" + base + ", " + more + "}")), DataError)
        << more;
  }
}

// Returns the message that refuses a run with `count` windows of `batches` batches each.
std::string refusal_of_windows(std::int64_t count, std::int64_t batches, std::int64_t rewinds) {
  nlohmann::json json = to_json(at(7));
  json["rewinds"] = rewinds;
  for (std::int64_t i = 0; i < count; ++i) {
    json["left_out"].push_back({{"step", 1}, {"first", 1 + i * batches}, {"count", batches}});
  }
  const std::string text = json.dump();
  return message_of<DataError>([&] { (void)counters_from_json(parse_json(text)); });
}

TEST(TrainingCounters, RefuseCountsThatContradictEachOther) {
  const auto refusal = [](std::string_view text) {
    return message_of<DataError>([&] { (void)counters_from_json(parse_json(text)); });
  };
  EXPECT_THAT(refusal(R"({"step": 7, "updates": 7, "skipped_steps": 1, "skipped_in_a_row": 0})"),
              HasSubstr("updates 7 and skipped_steps 1 do not add up to step 7"));
  EXPECT_THAT(refusal(R"({"step": 7, "updates": 0, "skipped_steps": 0, "skipped_in_a_row": 0})"),
              HasSubstr("do not add up"));
  EXPECT_THAT(refusal(R"({"step": 7, "updates": 6, "skipped_steps": 1, "skipped_in_a_row": 2})"),
              HasSubstr("skipped_in_a_row 2 is more than skipped_steps 1"));
  EXPECT_THAT(refusal(R"({"step": 4294967296, "updates": 4294967296, "skipped_steps": 0,
                          "skipped_in_a_row": 0})"),
              HasSubstr("field 'step' is 4294967296, not a whole number from 0 to 4294967295"));
}

TEST(TrainingCounters, RefuseListsThatNoRunWrites) {
  // Each window is possible alone, but not all of them.
  EXPECT_THAT(refusal_of_windows(3, std::int64_t{1} << 39, 3), HasSubstr("more than a run can"));
  EXPECT_THAT(refusal_of_windows(3, 1, 2), HasSubstr("left_out: 3 windows do not match rewinds"));
  // The time to read them grows with their number, not with its square.
  constexpr std::int64_t kMany = 20'000;
  EXPECT_THAT(refusal_of_windows(kMany, std::int64_t{1} << 26, kMany),
              HasSubstr("more than a run can"));
  TrainingCounters counters = at(7);
  counters.history = {std::vector<double>(4097, 1.0), std::vector<double>(4097, 1.0)};
  const std::string text = to_json(counters).dump();
  EXPECT_THAT(message_of<DataError>([&] { (void)counters_from_json(parse_json(text)); }),
              HasSubstr("losses: 4097 steps are more than the largest divergence.window of 4096"));
}

TEST(TrainingCounters, LeavesTheDataOutThatLedThere) {
  TrainingCounters now = at(400);
  leave_out(now, at(500), 100);
  EXPECT_EQ(now.left_out, (std::vector<DataWindow>{{400, 400, 201}}));
  EXPECT_EQ(now.batches(), 601);
  EXPECT_EQ(now.rewinds, 1);

  // The run goes back again, and further: the batches that either line of steps has seen are left
  // out.
  TrainingCounters failed = now;
  failed.step = 450;
  TrainingCounters earlier = at(300);
  leave_out(earlier, failed, 10);
  EXPECT_EQ(earlier.left_out, (std::vector<DataWindow>{{300, 300, 362}}));
  EXPECT_EQ(earlier.batches(), failed.batches() + 11);
  EXPECT_EQ(earlier.rewinds, 2);
}

// The samples must be the sum over the steps. The batches that were left out count only for the
// ramp.
TEST(TrainingCounters, CountTheSamplesOfTheStepsDone) {
  const BatchSchedule ramp(9, {2, 3, 4});
  const std::vector<DataWindow> left_out = {{3, 3, 2}, {3, 5, 1}, {7, 10, 4}};
  for (std::int64_t step = 7; step < 20; ++step) {
    const TrainingCounters counters = at(step, left_out);
    std::int64_t samples = 0;
    for (std::int64_t done = 0; done < step; ++done) {
      samples += ramp.size_of(done + (done < 3 ? 0 : done < 7 ? 3 : 7));
    }
    EXPECT_EQ(counters.samples(ramp), samples) << step;
    EXPECT_EQ(counters.samples(9), 9 * step);
    EXPECT_EQ(at(step).samples(ramp), ramp.before(step));
  }
}

TEST(TrainingCounters, KnowWhatARunHasPassed) {
  const TrainingCounters now = at(520, {{400, 400, 101}});
  EXPECT_TRUE(has_passed(now, at(300)));
  EXPECT_TRUE(has_passed(now, at(400)));
  EXPECT_FALSE(has_passed(now, at(480))) << "it was left behind by the rewind";
  EXPECT_TRUE(has_passed(now, at(480, {{400, 400, 101}})));
  EXPECT_FALSE(has_passed(now, at(480, {{400, 400, 102}})));
  EXPECT_FALSE(has_passed(now, at(480, {{400, 400, 101}, {450, 551, 5}})));
  EXPECT_FALSE(has_passed(now, at(521, {{400, 400, 101}})));
}

}  // namespace
}  // namespace trireme
