#include "src/parallel/pipeline/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/parallel/pipeline/schedule_grid.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = PipelineStep::Kind;

// Returns "F0 B'0 ...": the letter of the kind, a "'" for each chunk before, and the micro-batch.
std::string text_of(const std::vector<PipelineStep>& steps) {
  std::string text;
  for (const PipelineStep& step : steps) {
    text += text.empty() ? "" : " ";
    text += "FBIWT"[static_cast<std::size_t>(step.kind)];
    text += std::string(static_cast<std::size_t>(step.chunk), '\'');
    text += std::to_string(step.micro_batch);
  }
  return text;
}

std::string text_of(PipelineSchedule schedule, const PipelineShape& shape, int stage) {
  return text_of(make_schedule(schedule, shape, stage));
}

TEST(PipelineSchedule, SmallOnesAreThoseOfThePapers) {
  const PipelineShape shape{3, 1, 4};
  EXPECT_EQ(text_of(PipelineSchedule::gpipe, shape, 1), "F0 F1 F2 F3 B0 B1 B2 B3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, shape, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, shape, 1), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, shape, 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, {1, 1, 2}, 0), "F0 B0 F1 B1");
}

// The schedule is that of Qi et al., 2023, figure 3 (ZB-H1).
TEST(PipelineSchedule, WeightsArePutOffToWhereAStageWouldIdle) {
  const PipelineShape shape{4, 1, 8};
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, shape, 0),
            "F0 F1 F2 F3 I0 W0 F4 I1 W1 F5 I2 W2 F6 I3 W3 F7 I4 W4 I5 W5 I6 W6 I7 W7");
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, shape, 2),
            "F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 F6 I5 W3 F7 I6 W4 I7 W5 W6 W7");
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, shape, 3),
            "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 F6 I6 W3 F7 I7 W4 W5 W6 W7");
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, {4, 1, 2}, 0), "F0 F1 I0 W0 I1 W1");
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, {4, 1, 2}, 3), "F0 I0 F1 I1 W0 W1");
  EXPECT_EQ(text_of(PipelineSchedule::zero_bubble, {1, 1, 2}, 0), "F0 I0 W0 F1 I1 W1");
}

// The schedule is that of Narayanan et al., 2021, figure 4, with 2 ranks instead of 4.
TEST(PipelineSchedule, ChunksTakeTurns) {
  const PipelineShape shape{2, 2, 4};
  EXPECT_EQ(text_of(PipelineSchedule::interleaved, shape, 0),
            "F0 F1 F'0 F'1 F2 B'0 F3 B'1 F'2 B0 F'3 B1 B'2 B'3 B2 B3");
  EXPECT_EQ(text_of(PipelineSchedule::interleaved, shape, 1),
            "F0 F1 F'0 B'0 F'1 B'1 F2 B0 F3 B1 F'2 B'2 F'3 B'3 B2 B3");
}

// The backward of micro-batch 0 ends at 4 units of time on the last stage, and at 6 on the first.
TEST(PipelineSchedule, TiesComeWhenTheirGradientIsThere) {
  const PipelineShape shape{2, 1, 4, true};
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, shape, 0), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, shape, 1),
            "F0 B0 F1 B1 T0 F2 B2 T1 F3 B3 T2 T3");
  EXPECT_EQ(text_of(PipelineSchedule::one_f_one_b, {1, 1, 2, true}, 0), "F0 B0 F1 B1");
}

TEST(PipelineSchedule, EveryStepIsThereOnceAndInOrder) {
  for (const GridPoint& point : schedule_grid()) {
    SCOPED_TRACE(point.text());
    const PipelineShape& shape = point.shape;
    const PipelineSteps all = make_schedules(point.schedule, shape);
    ASSERT_EQ(static_cast<int>(all.size()), shape.stages);
    const bool split = point.schedule == PipelineSchedule::zero_bubble;
    for (int stage = 0; stage < shape.stages; ++stage) {
      const bool ties = shape.tied && shape.stages > 1 && stage == shape.stages - 1;
      std::map<std::pair<Kind, int>, std::int64_t> next;  // by kind and chunk
      for (const PipelineStep& step : all[static_cast<std::size_t>(stage)]) {
        if (step.kind == Kind::backward_weight) {
          ASSERT_LT(step.micro_batch, (next[{Kind::backward_input, step.chunk}])) << describe(step);
        }
        ASSERT_EQ(step.micro_batch, (next[{step.kind, step.chunk}]++)) << describe(step);
      }
      std::set<Kind> kinds = {Kind::forward};
      split ? kinds.insert({Kind::backward_input, Kind::backward_weight})
            : kinds.insert({Kind::backward});
      std::size_t expected = kinds.size() * static_cast<std::size_t>(shape.chunks);
      for (const Kind kind : kinds) {
        for (int chunk = 0; chunk < shape.chunks; ++chunk) {
          ASSERT_EQ((next[{kind, chunk}]), shape.micro_batches) << name_of(kind) << chunk;
        }
      }
      if (ties) {
        ASSERT_EQ((next[{Kind::tie, shape.chunks - 1}]), shape.micro_batches);
        ++expected;
      }
      ASSERT_EQ(next.size(), expected) << "no other steps";
    }
  }
}

// Tied embeddings add ties to the last stage and change nothing else.
TEST(PipelineSchedule, TiesAreTheOnlyDifference) {
  for (const GridPoint& point : schedule_grid()) {
    PipelineShape plain = point.shape;
    plain.tied = false;
    for (int stage = 0; stage < plain.stages; ++stage) {
      auto steps = make_schedule(point.schedule, point.shape, stage);
      std::erase_if(steps, [](const PipelineStep& step) { return step.kind == Kind::tie; });
      ASSERT_EQ(steps, make_schedule(point.schedule, plain, stage)) << point.text();
    }
  }
}

// Returns the most micro-batches that are between their backward and their tie at one time in the
// last stage's steps, which is the number of open gradients of a tied matrix. Returns 0 without
// ties.
std::int64_t peak_open_ties(const std::vector<PipelineStep>& steps, const PipelineShape& shape) {
  if (!shape.tied || shape.stages == 1) {
    return 0;
  }
  std::int64_t open = 0;
  std::int64_t peak = 0;
  for (const PipelineStep& step : steps) {
    const bool begins = step.kind == Kind::backward || step.kind == Kind::backward_input;
    open += begins && step.chunk == shape.chunks - 1 ? 1 : 0;
    peak = std::max(peak, open);
    open -= step.kind == Kind::tie ? 1 : 0;
  }
  return peak;
}

TEST(PipelineSchedule, FewTiesAreOpen) {
  const auto open = [](PipelineSchedule schedule, const PipelineShape& shape) {
    return peak_open_ties(make_schedule(schedule, shape, shape.stages - 1), shape);
  };
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {2, 1, 8, true}), 2);
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {4, 1, 16, true}), 3);
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {3, 1, 16, true}), 3);
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {8, 1, 16, true}), 6);
  EXPECT_EQ(open(PipelineSchedule::zero_bubble, {2, 1, 8, true}), 2);
  EXPECT_EQ(open(PipelineSchedule::zero_bubble, {3, 1, 16, true}), 2);
  EXPECT_EQ(open(PipelineSchedule::zero_bubble, {4, 1, 16, true}), 3);
  EXPECT_EQ(open(PipelineSchedule::zero_bubble, {8, 1, 16, true}), 6);
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {2, 1, 8, false}), 0);
  EXPECT_EQ(open(PipelineSchedule::one_f_one_b, {1, 1, 8, true}), 0);
  for (const GridPoint& point : schedule_grid()) {
    EXPECT_LE(open(point.schedule, point.shape), point.shape.stages + 1) << point.text();
  }
}

TEST(PipelineSchedule, ForwardsAloneTakeAnyNumberOfMicroBatches) {
  EXPECT_EQ(text_of(make_forward_schedule({2, 1, 3})), "F0 F1 F2");
  EXPECT_EQ(text_of(make_forward_schedule({2, 2, 3})), "F0 F1 F'0 F'1 F2 F'2");
  EXPECT_TRUE(make_forward_schedule({2, 2, 0}).empty());
}

TEST(PipelineSchedule, NamesGoBothWays) {
  EXPECT_THAT(pipeline_schedule_names(),
              ElementsAre("gpipe", "1f1b", "interleaved", "zero_bubble"));
  for (const std::string& name : pipeline_schedule_names()) {
    EXPECT_EQ(name_of(parse_pipeline_schedule(name)), name);
  }
  EXPECT_THAT(
      message_of<ConfigError>([] { (void)parse_pipeline_schedule("1F1B"); }),
      HasSubstr("unknown pipeline schedule '1F1B': choose one of gpipe, 1f1b, interleaved"));
}

TEST(PipelineSchedule, RefusesWhatItHasNot) {
  const auto refused = [](PipelineSchedule schedule, const PipelineShape& shape) {
    return message_of<ConfigError>([&] { (void)make_schedule(schedule, shape, 0); });
  };
  for (const PipelineSchedule one :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    EXPECT_THAT(refused(one, {2, 3, 4}),
                AllOf(HasSubstr(name_of(one)), HasSubstr("1 virtual stage per rank, not 3")));
  }
  EXPECT_THAT(refused(PipelineSchedule::interleaved, {2, 1, 4}), HasSubstr("at least 2 virtual"));
  EXPECT_THAT(refused(PipelineSchedule::interleaved, {4, 2, 10}),
              HasSubstr("a multiple of the 4 stages, but it is 10: use 8 or 12 micro-batches"));
  EXPECT_THAT(refused(PipelineSchedule::interleaved, {4, 2, 3}), HasSubstr("use 4 micro-batches"));
  EXPECT_THAT(refused(PipelineSchedule::gpipe, {0, 1, 1}), HasSubstr("0 stages"));
  EXPECT_THAT(refused(PipelineSchedule::gpipe, {1, 0, 1}), HasSubstr("0 virtual stages"));
  EXPECT_THAT(refused(PipelineSchedule::gpipe, {1, 1, 0}), HasSubstr("0 micro-batches"));
  EXPECT_THROW((void)make_schedule(PipelineSchedule::gpipe, {2, 1, 1}, 2), InternalError);
}

}  // namespace
}  // namespace trireme
