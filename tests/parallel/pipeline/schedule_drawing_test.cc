#include "src/parallel/pipeline/schedule_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/parallel/pipeline/schedule_grid.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

std::string draw(PipelineSchedule schedule, const PipelineShape& shape) {
  const PipelineCosts costs = equal_costs(shape, {});
  return to_svg(simulate(make_schedules(schedule, shape), shape, costs), shape, "a <title>");
}

TEST(ScheduleDrawing, HasABoxAStepAndARowAStage) {
  for (const GridPoint& point : schedule_grid(4, 4)) {
    std::size_t steps = 0;
    for (const auto& stage : make_schedules(point.schedule, point.shape)) {
      steps += stage.size();
    }
    const std::string svg = draw(point.schedule, point.shape);
    EXPECT_EQ(count(svg, "class=\"box\""), steps) << point.text();
    EXPECT_EQ(count(svg, "class=\"idle\""), static_cast<std::size_t>(point.shape.stages));
    EXPECT_THAT(svg, AllOf(testing::StartsWith("<svg xmlns="), testing::EndsWith("</svg>\n"),
                           HasSubstr("a &lt;title&gt;"), Not(HasSubstr("nan"))))
        << point.text();
  }
}

TEST(ScheduleDrawing, SaysWhatIsWhat) {
  EXPECT_THAT(draw(PipelineSchedule::zero_bubble, {2, 1, 2}),
              AllOf(HasSubstr(">input gradient<"), HasSubstr(">weight gradient<"),
                    Not(HasSubstr(">tie<")), HasSubstr("micro-batch 1, chunk 0: ")));
  EXPECT_THAT(draw(PipelineSchedule::interleaved, {2, 2, 2, true}),
              AllOf(HasSubstr(">tie<"), HasSubstr("lighter: later chunks")));
  EXPECT_THAT(draw(PipelineSchedule::one_f_one_b, {4, 1, 8}),
              HasSubstr("bubble: 27.3 % of the time, 37.5 % of the work; live at most: 4"));
}

TEST(ScheduleDrawing, LongOnesKeepTheirWidth) {
  const std::string svg = draw(PipelineSchedule::one_f_one_b, {2, 1, 2000});
  EXPECT_THAT(svg, HasSubstr("width=\"3226\""));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"number\">1999<"))) << "no room for it";
}

}  // namespace
}  // namespace trireme
