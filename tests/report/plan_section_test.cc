#include "src/report/plan_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json layout(const char* name, int nodes, double days, bool on_front) {
  Json terms = Json::object();
  for (const char* const term :
       {"products", "head", "attention", "kernels", "recompute", "tensor", "accumulate", "transfer",
        "bubble", "gradients", "parameters", "optimizer", "checkpoint"}) {
    terms[term] = 0.01;
  }
  Json memory = Json::object();
  for (const char* const part : {"parameters", "gradients", "optimizer", "activations",
                                 "communication", "snapshot", "reserved"}) {
    memory[part] = 1 << 30;
  }
  return {{"layout", name},
          {"nodes", nodes},
          {"on_front", on_front},
          {"step_seconds", 0.13},
          {"days", days},
          {"kilowatt_hours", 2500},
          {"terms", std::move(terms)},
          {"memory", std::move(memory)}};
}

// As src/app/plan/layouts_report.cc writes it.
Json plan() {
  const Json steps = {{{"kind", "forward"}, {"from", 0}, {"to", 0.04}, {"what", "forward 0"}},
                      {{"kind", "backward"}, {"from", 0.05}, {"to", 0.11}, {"what", "backward 0"}},
                      {{"kind", "optimizer"}, {"from", 0.12}, {"to", 0.13}, {"what", "optimizer"}}};
  return {{"schema", 2},
          {"cluster", "<pod>"},
          {"residual_percent", 7.5},
          {"tried", 40},
          {"fit", 30},
          {"warnings", {"vocab 50257 is odd"}},
          {"layouts",
           {layout("dp 8", 2, 3, true), layout("dp 4", 1, 5, true), layout("dp 2", 2, 9, false)}},
          {"timeline",
           {{"micro_batches", 8},
            {"drawn_micro_batches", 6},
            {"stages",
             {{{"busy_seconds", 0.1}, {"idle_seconds", 0.01}, {"steps", steps}},
              {{"busy_seconds", 0.09}, {"idle_seconds", 0.02}, {"steps", steps}}}}}},
          {"goodput", {{"draws", 200}, {"days", 3}, {"quantiles", {0.9, 0.95, 0.99}}}}};
}

TEST(PlanSection, ShowsLayoutsTheFrontTheTimelineAndGoodput) {
  EXPECT_TRUE(looks_like_plan(plan().dump()));
  EXPECT_FALSE(looks_like_plan("{\"schema\": 2, \"command\": \"coll\"}"));
  const DocSection section = plan_section(plan().dump(), "plan.json");
  ASSERT_EQ(section.figures.size(), 5U);
  const std::vector<std::vector<std::string>>& front = section.figures[2].table.rows;
  ASSERT_EQ(front.size(), 2U) << "one row for each number of nodes";
  EXPECT_THAT(front[0], testing::ElementsAre("1", "5", "2.5", "yes", "dp 4"));
  EXPECT_EQ(front[1].back(), "dp 8");
  EXPECT_THAT(section.figures[3].table.rows[1], testing::ElementsAre("1", "90", "20"));
  EXPECT_THAT(section.figures[4].table.rows[1], testing::ElementsAre("50 %", "95.00 %"));
  EXPECT_EQ(section.figures[0].table.rows[0][1], "10") << "ms of products";
  EXPECT_EQ(section.figures[0].table.rows[0][7], "20") << "transfer and bubble";
  const std::string page = to_html({"t", {}, {section}});
  for (const char* const words :
       {"Plan for &lt;pod&gt;", "40 layouts tried, and 30 fit", "The best layout is dp 8",
        "error of 7.5 %", "vocab 50257 is odd", "for 6 of 8 micro-batches", "200 simulations"}) {
    EXPECT_THAT(page, HasSubstr(words)) << words;
  }
}

TEST(PlanSection, ShowsPlansWithoutFailuresAndWithoutLayouts) {
  Json calm = plan();
  calm["goodput"] = nullptr;
  EXPECT_EQ(plan_section(calm.dump(), "p").figures.size(), 4U);
  Json nothing = plan();
  nothing["layouts"] = Json::array();
  nothing["timeline"] = nullptr;
  EXPECT_TRUE(plan_section(nothing.dump(), "p").figures.empty());
}

TEST(PlanSection, SaysWhatIsWrongWithAFile) {
  EXPECT_THROW(plan_section("{\"schema\": 2, \"tri", "p"), DataError);
  for (const auto& [pointer, value] :
       std::map<std::string, Json>{{"/schema", 1},
                                   {"/cluster", 5},
                                   {"/tried", -1},
                                   {"/layouts", "all"},
                                   {"/layouts/0/terms", {{"products", 1}}},
                                   {"/layouts/0/terms/head", "1"},
                                   {"/layouts/1/days", "long"},
                                   {"/layouts/1/on_front", 1},
                                   {"/timeline", nullptr},
                                   {"/timeline/stages/0/steps/0/kind", "sideways"},
                                   {"/timeline/stages/0/steps/0/from", true},
                                   {"/timeline/stages/1", 3},
                                   {"/goodput/quantiles", {0.5, "1"}},
                                   {"/goodput/draws", -3}}) {
    Json odd = plan();
    odd[Json::json_pointer(pointer)] = value;
    EXPECT_THROW(plan_section(odd.dump(), "p"), DataError) << pointer;
  }
}

TEST(PlanSection, DrawsAbsurdFiguresWithoutFailing) {
  Json odd = plan();
  odd["layouts"][0]["days"] = -1;
  odd["layouts"][0]["nodes"] = 0;
  odd["layouts"][1]["days"] = 1e308;
  odd["layouts"][0]["terms"]["products"] = -5;
  odd["timeline"]["stages"][0]["steps"][0]["to"] = -1e300;
  odd["goodput"]["quantiles"] = Json::array();
  EXPECT_THAT(to_html({"t", {}, {plan_section(odd.dump(), "p")}}), HasSubstr("</html>"));
}

}  // namespace
}  // namespace trireme
