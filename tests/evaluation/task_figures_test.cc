#include "src/evaluation/task_figures.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TaskItem question(std::vector<std::string> texts, std::int64_t gold,
                  const std::string& group = "") {
  TaskItem item;
  item.texts = std::move(texts);
  item.gold = gold;
  item.group = group;
  return item;
}

ItemResult scores(std::vector<double> values) {
  ItemResult result;
  result.log_likelihoods = std::move(values);
  result.tokens = 1;
  return result;
}

std::map<std::string, double> named(const NamedFigures& figures) {
  return {figures.begin(), figures.end()};
}

TEST(TaskFigures, LengthsLeaveOutTheBlankBeforeAChoice) {
  // 2 and 4 characters; 4 and 4 bytes.
  const TaskItem item = question({" \xc3\xa9\xc3\xa9", " abcd"}, 0);
  const ItemResult result = scores({-4, -6});
  EXPECT_EQ(choice_of(item, result, ChoiceLength::none), 0U);
  EXPECT_EQ(choice_of(item, result, ChoiceLength::characters), 1U);  // -2 and -1.5
  EXPECT_EQ(choice_of(item, result, ChoiceLength::bytes), 0U);       // -1 and -1.5
}

TEST(TaskFigures, TheFirstOfEqualChoicesIsChosenAndNanNever) {
  const TaskItem item = question({" a", " b", " c"}, 0);
  EXPECT_EQ(choice_of(item, scores({-2, -1, -1}), ChoiceLength::none), 1U);
  EXPECT_EQ(choice_of(item, scores({NAN, -INFINITY, -1}), ChoiceLength::none), 2U);
  EXPECT_EQ(choice_of(item, scores({NAN, NAN, NAN}), ChoiceLength::none), 3U);
}

TEST(TaskFigures, MeansHaveTheStandardErrorOfASample) {
  const EvalTask task = {parse_task_source("arc:f"),
                         "",
                         {question({" a", " b"}, 0, "x"), question({" a", " b"}, 1, "x"),
                          question({" a", " b"}, 1, "y"), question({" a", " b"}, 0)}};
  const TaskFigures figures =
      figures_of(task, {scores({-1, -2}), scores({-2, -1}), scores({-1, -2}), scores({-1, -2})});
  const auto all = named(figures.figures);
  EXPECT_DOUBLE_EQ(all.at("acc"), 0.75);
  EXPECT_DOUBLE_EQ(all.at("acc_stderr"), 0.25);  // sqrt(0.75 / 3 / 4)
  ASSERT_EQ(figures.groups.size(), 2U);
  EXPECT_EQ(figures.groups[0].name, "x");
  EXPECT_DOUBLE_EQ(named(figures.groups[0].figures).at("acc"), 1);
  EXPECT_DOUBLE_EQ(named(figures.groups[1].figures).at("acc"), 0);
  EXPECT_FALSE(named(figures.groups[1].figures).contains("acc_stderr"));
  EXPECT_EQ(figures_json(figures)["groups"]["y"]["items"], 1);
  EXPECT_THAT(figures_table({figures}), AllOf(HasSubstr("0.75 +- 0.25"), HasSubstr("  y ")));
}

TEST(TaskFigures, PerplexitiesWeighDocumentsByTheirSize) {
  EvalTask task = {
      parse_task_source("perplexity:f"), "", {question({"a b"}, 0), question({"\xc3\xa9"}, 0)}};
  std::vector<ItemResult> results = {scores({-6}), scores({-4})};
  results[0].tokens = 3;
  results[1].tokens = 2;
  const auto figures = named(figures_of(task, results).figures);
  EXPECT_DOUBLE_EQ(figures.at("loss"), 2);
  EXPECT_DOUBLE_EQ(figures.at("word_perplexity"), std::exp(10.0 / 3));
  EXPECT_DOUBLE_EQ(figures.at("byte_perplexity"), std::exp(2));
  EXPECT_DOUBLE_EQ(figures.at("bits_per_byte"), 2 / std::log(2));
  EXPECT_DOUBLE_EQ(figures.at("document_perplexity_max"), std::exp(2));
  EXPECT_EQ(figures.at("tokens"), 5);
}

TEST(TaskFigures, DetailsSayWhatWasChosen) {
  EvalTask task = {parse_task_source("arc:f"), "", {question({" a", " b"}, 1, "\x1b")}};
  task.items[0].number = 7;
  const auto line = nlohmann::json::parse(details_text(task, {scores({-1, -2})}));
  EXPECT_EQ(line["example"], 7);
  EXPECT_EQ(line["chosen"], 0);
  EXPECT_EQ(line["gold"], 1);
  EXPECT_THAT(figures_table({figures_of(task, {scores({-1, -2})})}), Not(HasSubstr("\x1b")));
}

TEST(EncodePair, BlanksAtTheEndOfAContextBelongToTheContinuation) {
  const auto bytes = make_tokenizer("bytes");
  const ContextTokens pair = encode_pair(*bytes, "ab  ", " c");
  EXPECT_THAT(pair.context, ElementsAre('a', 'b'));
  EXPECT_THAT(pair.continuation, ElementsAre(' ', ' ', ' ', 'c'));
  for (const char* blank : {"", " "}) {
    EXPECT_THAT(encode_pair(*bytes, blank, "x").context, ElementsAre(256));
  }
  EXPECT_THAT(encode_pair(*bytes, " ", "x").continuation, ElementsAre(' ', 'x'));
}

}  // namespace
}  // namespace trireme
