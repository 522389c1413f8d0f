#include "src/report/columns.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;

TEST(Columns, HoldTheNumbersOfEachStep) {
  const RunColumns m = parse_columns(
      "{\"step\": 1, \"loss\": 2.5, \"tokens\": 10, \"device\": \"cpu\", \"unknown\": [1]}\n"
      "{\"step\": 5, \"loss\": null, \"tokens\": 50, \"val_loss\": 2}\n");
  EXPECT_THAT(m.step, ElementsAre(1, 5));
  EXPECT_THAT(m.of("tokens"), ElementsAre(10, 50));
  EXPECT_EQ(m.of("loss")[0], 2.5);
  EXPECT_TRUE(std::isnan(m.of("loss")[1]));
  EXPECT_EQ(m.last("loss"), 2.5);
  EXPECT_TRUE(m.has("val_loss"));
  EXPECT_FALSE(m.has("lr"));
  EXPECT_EQ(m.of("lr").size(), 2U);
  EXPECT_EQ(m.device, "cpu");
  EXPECT_THAT(m.step_counts(), ElementsAre(1, 4));
  EXPECT_EQ(m.damaged.count, 0);
}

TEST(Columns, CountLinesThatAreNoSteps) {
  const RunColumns m = parse_columns(
      "{\"step\": 1, \"loss\": 1}\n"
      "\n"
      "not JSON\n"
      "[{\"step\": 2}]\n"
      "{\"step\": \"3\"}\n"
      "{\"step\": 3.5}\n"
      "{\"step\": -4}\n"
      "{\"step\": 1e300}\n"
      "{\"a\": {\"step\": 7}}\n"
      "{\"step\": 8, \"loss\": 1e999}\n"
      "{\"step\": 9, \"loss\": {\"loss\": 3}}\n"
      "{\"step\": 10, \"lo");
  EXPECT_THAT(m.step, ElementsAre(1, 9));
  EXPECT_EQ(m.damaged.count, 9) << "not the last one, which is being written";
  EXPECT_EQ(m.damaged.first, 2);
  EXPECT_TRUE(std::isnan(m.of("loss")[1]));
}

TEST(Columns, ADeepLineIsDamaged) {
  const auto nested = [](std::size_t lists) {
    return "{\"step\": 1, \"a\": " + std::string(lists, '[') + std::string(lists, ']') + "}\n";
  };
  const RunColumns m = parse_columns(nested(31) + nested(32));
  EXPECT_EQ(m.damaged.count, 1) << "as for the other readers of metrics.jsonl";
  EXPECT_EQ(m.damaged.first, 2);
}

TEST(Columns, StepsMustAscend) {
  const RunColumns m = parse_columns(
      "{\"step\": 1, \"loss\": 1}\n{\"step\": 900, \"loss\": 2, \"lr\": 3}\n"
      "{\"step\": 2, \"loss\": 4}\n{\"step\": 3, \"sources\": {\"web\": {\"loss\": 5}}}\n"
      "{\"step\": 0, \"loss\": 6}\n");
  EXPECT_THAT(m.step, ElementsAre(1, 2, 3)) << "an absurd step does not hide those behind it";
  EXPECT_EQ(m.out_of_order, 2);
  EXPECT_EQ(m.of("loss")[1], 4);
  EXPECT_TRUE(std::isnan(m.of("lr")[1]));
  EXPECT_EQ(m.of("sources/web/loss")[2], 5);
  EXPECT_EQ(m.of("missing").size(), 3U);
}

TEST(Columns, ImpossibleAmountsAreLeftOutAndCounted) {
  const RunColumns m = parse_columns(
      "{\"step\": 1, \"memory_bytes\": 1e308, \"step_ms\": -4, \"tokens\": 64}\n"
      "{\"step\": 2, \"memory_bytes\": 4096, \"grad_norm\": 1e30, \"loss\": -2}\n");
  EXPECT_EQ(m.impossible, 2);
  EXPECT_TRUE(std::isnan(m.of("memory_bytes")[0]));
  EXPECT_EQ(m.of("memory_bytes")[1], 4096);
  EXPECT_FALSE(m.has("step_ms"));
  EXPECT_EQ(m.last("tokens"), 64);
  EXPECT_EQ(m.last("grad_norm"), 1e30) << "a norm may be that large";
  EXPECT_EQ(m.last("loss"), -2);
}

// A later start writes the evaluation of the step from which it resumed as a line of its own.
TEST(Columns, ASecondLineOfAStepAddsToTheFirst) {
  const RunColumns m = parse_columns(
      "{\"step\": 5, \"loss\": 1, \"step_ms\": 7}\n"
      "{\"step\": 5, \"loss\": 1, \"step_ms\": null, \"val_loss\": 3}\n");
  EXPECT_THAT(m.step, ElementsAre(5));
  EXPECT_EQ(m.of("step_ms")[0], 7);
  EXPECT_EQ(m.of("val_loss")[0], 3);
}

TEST(Columns, SourcesAndValidationSetsHaveNames) {
  const RunColumns m = parse_columns(
      "{\"step\": 1, \"sources\": {\"web\": {\"loss\": 3, \"tokens\": 8, \"x\": [7]}}}\n"
      "{\"step\": 2, \"sources\": {\"web\": {\"loss\": null}, \"code\": {\"loss\": 2}},"
      " \"val_losses\": {\"a/b\": 5, \"c\": {\"d\": 6}}, \"other\": {\"e\": 1}}\n"
      "{\"step\": 3, \"loss\": 1}\n");
  EXPECT_THAT(m.names_in("sources"), ElementsAre("code", "web"));
  EXPECT_THAT(m.names_in("val_losses"), ElementsAre("a", "c"));
  EXPECT_TRUE(m.names_in("other").empty());
  ASSERT_EQ(m.of("sources/web/loss").size(), 3U);
  EXPECT_EQ(m.of("sources/web/loss")[0], 3);
  EXPECT_TRUE(std::isnan(m.of("sources/web/loss")[1]));
  EXPECT_EQ(m.last("sources/web/tokens"), 8);
  EXPECT_TRUE(std::isnan(m.of("sources/code/loss")[0]));
  EXPECT_EQ(m.of("sources/code/loss")[1], 2);
}

TEST(Columns, DeepNestingIsRefused) {
  const RunColumns m = parse_columns("{\"step\": 1, \"a\": " + std::string(100000, '[') + "\n");
  EXPECT_TRUE(m.empty());
  EXPECT_EQ(m.damaged.count, 1);
}

}  // namespace
}  // namespace trireme
