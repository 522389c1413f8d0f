#include "src/evaluation/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

EvalTask parsed(const std::string& kind, const std::string& text) {
  return parse_task(parse_task_source(kind + ":t.jsonl"), text, "group");
}

std::string refusal(const std::string& kind, const std::string& text) {
  return message_of<DataError>([&] { parsed(kind, text); });
}

TEST(TaskFile, SourcesAreNamedByTheirKindOrTheUser) {
  const TaskSource plain = parse_task_source("arc:a:b.jsonl");
  EXPECT_EQ(plain.name, "arc");
  EXPECT_EQ(plain.kind, TaskKind::arc);
  EXPECT_EQ(plain.file, "a:b.jsonl");
  const TaskSource named = parse_task_source("arc-easy=arc:x=y.jsonl");
  EXPECT_EQ(named.name, "arc-easy");
  EXPECT_EQ(named.file, "x=y.jsonl");
  for (const char* wrong :
       {"", "arc", "arc:", "mmlu:f", "a.b=arc:f", "=arc:f", "a b=arc:f", "\x1b[2J=arc:f"}) {
    const std::string message = message_of<ConfigError>([&] { parse_task_source(wrong); });
    EXPECT_THAT(message, HasSubstr("--task ")) << wrong;
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
  }
}

TEST(TaskFile, HellaswagRemovesMarksOfWikihow) {
  const EvalTask task =
      parsed("hellaswag",
             "\n"
             R"({"activity_label": "Car", "ctx_a": "[header] How to [title] Start. [step] Go", )"
             R"("ctx_b": "then THE man", "endings": ["[title] Wax", "stops [a\n] x [b] y  z"], )"
             R"("label": 1})"
             "\n\n");
  ASSERT_EQ(task.items.size(), 1);
  const TaskItem& item = task.items[0];
  EXPECT_EQ(item.context, "Car: How to. Start. Go Then the man");
  EXPECT_THAT(item.texts, ElementsAre("  Wax", " stops [a\n] x y z"));
  EXPECT_EQ(item.gold, 1);
  EXPECT_EQ(item.number, 2);
}

TEST(TaskFile, ArcHasTwoForms) {
  const EvalTask task = parsed(
      "arc", R"({"question": "Why?", "choices": {"text": ["a b", "c"], "label": ["1", "2"]}, )"
             R"("answerKey": "2", "group": "g"})"
             "\n"
             R"({"question": {"stem": "Who?", "choices": [{"text": "x", "label": "A"}, )"
             R"({"text": "y", "label": "B"}]}, "answerKey": "A", "id": "7"})"
             "\r\n");
  ASSERT_EQ(task.items.size(), 2);
  EXPECT_EQ(task.items[0].context, "Question: Why?\nAnswer:");
  EXPECT_THAT(task.items[0].texts, ElementsAre(" a b", " c"));
  EXPECT_EQ(task.items[0].gold, 1);
  EXPECT_EQ(task.items[1].context, "Question: Who?\nAnswer:");
  EXPECT_EQ(task.items[1].gold, 0);
  EXPECT_THAT(task.groups(), ElementsAre("g"));
}

TEST(TaskFile, LambadaDividesAtTheLastBlank) {
  const EvalTask task = parsed("lambada", R"([{"text": "a  b\nc d"}, {"text": "word"}])");
  EXPECT_EQ(task.items[0].context, "a  b\nc");
  EXPECT_THAT(task.items[0].texts, ElementsAre(" d"));
  EXPECT_EQ(task.items[1].context, "");
  EXPECT_THAT(task.items[1].texts, ElementsAre(" word"));
  EXPECT_EQ(task.items[1].number, 2);
}

TEST(TaskFile, AnswersMayBeSeveral) {
  const EvalTask task = parsed("exact",
                               "{\"prompt\": \"2+2=\", \"answer\": \"4\"}\n"
                               "{\"prompt\": \"\", \"answer\": [\"a\", \"b\"]}");
  EXPECT_THAT(task.items[0].texts, ElementsAre("4"));
  EXPECT_THAT(task.items[1].texts, ElementsAre("a", "b"));
  EXPECT_EQ(task.digest.size(), 64);
}

TEST(TaskFile, WhatIsWrongIsNamedWithFileAndLine) {
  EXPECT_THAT(refusal("exact", "\n{\"prompt\": 1}"), HasSubstr("t.jsonl:2: field 'prompt'"));
  EXPECT_THAT(refusal("exact", "[{\"prompt\": \"a\"}]"),
              HasSubstr("t.jsonl: example 1: field 'answer' is missing"));
  EXPECT_THAT(refusal("exact", "{\"prompt\": \"a\", \"answer\": []}"), HasSubstr("0 texts"));
  EXPECT_THAT(refusal("exact", ""), HasSubstr("holds no examples"));
  EXPECT_THAT(refusal("exact", "[]"), HasSubstr("holds no examples"));
  EXPECT_THAT(refusal("exact", "7"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("exact", "{\"prompt\": \"\xff\"}"), HasSubstr("t.jsonl:1: "));
  EXPECT_THAT(refusal("lambada", R"({"text": "a "})"), HasSubstr("does not end with a word"));
  EXPECT_THAT(refusal("lambada", R"({"text": ""})"), HasSubstr("does not end with a word"));
  EXPECT_THAT(refusal("perplexity", R"({"text": ""})"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("perplexity", R"({"text": "a", "group": 7})"), HasSubstr("'group'"));
  EXPECT_THAT(refusal("perplexity", R"({"text": "a", "group": ""})"), HasSubstr("no group"));
}

TEST(TaskFile, QuestionsNeedChoicesAndTheirAnswer) {
  const auto arc = [](const std::string& texts, const std::string& labels, const std::string& key) {
    return R"({"question": "q", "choices": {"text": )" + texts + R"(, "label": )" + labels +
           R"(}, "answerKey": )" + key + "}";
  };
  EXPECT_THAT(refusal("arc", arc(R"(["a"])", R"(["A"])", R"("A")")), HasSubstr("1 choices"));
  EXPECT_THAT(refusal("arc", arc(R"(["a", "b"])", R"(["A"])", R"("A")")), HasSubstr("1 labels"));
  EXPECT_THAT(refusal("arc", arc(R"(["a", "b"])", R"(["A", "B"])", R"("\u001b")")),
              AllOf(HasSubstr("'\\x1b'"), HasSubstr("no choice")));
  EXPECT_THAT(refusal("arc", arc(R"(["a", ""])", R"(["A", "B"])", R"("A")")),
              HasSubstr("is empty"));
  EXPECT_THAT(refusal("arc", arc(R"([1, 2])", R"(["A", "B"])", R"("A")")),
              HasSubstr("not a list of texts"));
  const auto hellaswag = [](const std::string& label) {
    return R"({"activity_label": "", "ctx_a": "", "ctx_b": "", "endings": ["a", "b"], "label": )" +
           label + "}";
  };
  for (const char* wrong : {"\"\"", "\"2\"", "2", "-1", "\"-1\"", "1.5", "null", "\"1x\""}) {
    EXPECT_THAT(refusal("hellaswag", hellaswag(wrong)), HasSubstr("label")) << wrong;
  }
}

TEST(TaskFile, WordsAndCharactersAreCountedAsInPython) {
  EXPECT_EQ(word_count("a b\n\nc"), 3);
  EXPECT_EQ(word_count(" a "), 3);  // two of them are empty
  EXPECT_EQ(word_count(""), 1);
  EXPECT_EQ(character_count("h\xc3\xa9llo"), 5);
}

}  // namespace
}  // namespace trireme
