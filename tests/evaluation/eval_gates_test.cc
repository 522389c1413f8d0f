#include "src/evaluation/eval_gates.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class EvalGates : public testing::Test {
 protected:
  std::filesystem::path written(const std::string& text, const std::string& name = "gates.yaml") {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  GateFile gates(const std::string& text) { return load_gates(written(text)); }
  std::string refusal(const std::string& text) {
    return message_of<ConfigError>([&] { gates(text); });
  }
  // Returns whether the only gate of a file is met.
  bool met(const std::string& gate) {
    const auto outcomes =
        judge_gates(gates("baseline: b.json\ngates: {g: " + gate + "}"), result_, baseline_);
    EXPECT_EQ(outcomes.size(), 1);
    return outcomes.at(0).met;
  }

  TempFolder folder_;
  std::map<std::string, double> baseline_ = {{"loss", 2.0}, {"tasks.t.acc", 0.5}};
  std::map<std::string, double> result_ = result_figures(json::parse(R"({
      "schema": 2, "loss": 2.1, "nan": null, "negative": -1,
      "tasks": {"t": {"kind": "arc", "items": 30, "acc": 0.48, "groups": {
          "a": {"items": 10, "acc": 0.5}, "b": {"items": 9, "acc": 0.4},
          "x.y": {"items": 11, "acc": 0.53}}},
        "u": {"items": 3, "acc": 1, "groups": {"a": {"items": 3, "acc": null},
                                               "b": {"items": 4, "acc": 1}}}}})"));
};

TEST_F(EvalGates, ThresholdsIncludeTheirBound) {
  EXPECT_TRUE(met("{figure: loss, at_most: 2.1}"));
  EXPECT_FALSE(met("{figure: loss, at_most: 2.09}"));
  EXPECT_TRUE(met("{figure: tasks.t.acc, at_least: 0.48}"));
  EXPECT_FALSE(met("{figure: tasks.t.acc, at_least: 0.481}"));
  EXPECT_TRUE(met("{figure: tasks.t.groups.x.y.acc, at_least: 0.5}"));
  EXPECT_TRUE(met("{figure: negative, at_least: -1e0}"));
}

TEST_F(EvalGates, ChangesAreMeasuredFromTheBaseline) {
  EXPECT_TRUE(met("{figure: loss, rise_at_most: 0.11}"));
  EXPECT_FALSE(met("{figure: loss, rise_at_most: 0.09}"));
  EXPECT_TRUE(met("{figure: loss, rise_at_most: 5.1%}"));
  EXPECT_FALSE(met("{figure: loss, rise_at_most: 4.9%}"));
  EXPECT_TRUE(met("{figure: loss, drop_at_most: 0}"));
  EXPECT_FALSE(met("{figure: tasks.t.acc, drop_at_most: 0.01}"));
  EXPECT_TRUE(met("{figure: tasks.t.acc, drop_at_most: 0.03}"));
  EXPECT_FALSE(met("{figure: tasks.t.acc, drop_at_most: 3%}"));
  EXPECT_TRUE(met("{figure: tasks.t.acc, drop_at_most: 5%}"));
}

TEST_F(EvalGates, GroupsMayDifferByABound) {
  EXPECT_FALSE(met("{figure: tasks.t.acc, groups_differ_at_most: 0.12}"));
  EXPECT_TRUE(met("{figure: tasks.t.acc, groups_differ_at_most: 0.14}"));
  EXPECT_TRUE(met("{figure: tasks.t.acc, groups_differ_at_most: 0.04, groups: [a, x.y]}"));
  const auto outcome =
      judge_gates(gates("gates: {g: {figure: tasks.t.acc, groups_differ_at_most: 0.1}}"), result_,
                  {})
          .at(0);
  EXPECT_NEAR(outcome.found, 0.13, 1e-12);
  EXPECT_THAT(outcome.detail, AllOf(HasSubstr("b 0.4"), HasSubstr("x.y 0.53")));
}

TEST_F(EvalGates, AFigureThatIsNotFiniteMeetsNoGate) {
  EXPECT_FALSE(met("{figure: nan, at_least: 0}"));
  EXPECT_FALSE(met("{figure: nan, at_most: 0}"));
  EXPECT_FALSE(met("{figure: tasks.u.acc, groups_differ_at_most: 9}"));
  baseline_["nan"] = 1;
  EXPECT_FALSE(met("{figure: nan, drop_at_most: 9}"));
}

TEST_F(EvalGates, AMissingFigureIsAnError) {
  const auto judged = [&](const std::string& gate) {
    return message_of<ConfigError>([&] { met(gate); });
  };
  EXPECT_THAT(judged("{figure: tasks.t.ac, at_least: 0}"),
              AllOf(HasSubstr("gates.yaml:2: gate g: the result has no figure 'tasks.t.ac'"),
                    HasSubstr("did you mean 'tasks.t.acc'?")));
  EXPECT_THAT(judged("{figure: tasks.none.acc, groups_differ_at_most: 1}"), HasSubstr("no figure"));
  EXPECT_THAT(judged("{figure: loss, groups_differ_at_most: 1}"), HasSubstr("for 0 groups"));
  EXPECT_THAT(judged("{figure: tasks.t.acc, groups_differ_at_most: 1, groups: [a]}"),
              HasSubstr("for 1 groups"));
  EXPECT_THAT(judged("{figure: tasks.t.acc, groups_differ_at_most: 1, groups: [a, z]}"),
              HasSubstr("'tasks.t.groups.z.acc'"));
  EXPECT_THAT(judged("{figure: tasks.t.acc, groups_differ_at_most: 1, least_items: 10}"),
              HasSubstr("group 'b' has 9 examples"));
  baseline_.erase("loss");
  EXPECT_THAT(message_of<DataError>([&] { met("{figure: loss, rise_at_most: 1}"); }),
              HasSubstr("the baseline has no figure 'loss'"));
  baseline_["loss"] = NAN;
  EXPECT_THROW(met("{figure: loss, rise_at_most: 1}"), DataError);
}

TEST_F(EvalGates, TheFileIsReadStrictly) {
  EXPECT_THAT(refusal(""), HasSubstr("holds no gates"));
  for (const char* const empty : {"gates: {}", "gates:"}) {
    EXPECT_THAT(refusal(empty), HasSubstr("gates.yaml:1: `gates` is empty"));
  }
  EXPECT_THAT(refusal("gates: 7"), HasSubstr("gates.yaml:1"));
  EXPECT_THAT(refusal("gates:\n  a: {figure: x, at_lest: 1}"),
              AllOf(HasSubstr("gates.yaml:2"), HasSubstr("gates.a.at_least")));
  EXPECT_THAT(refusal("gates: {a: {at_least: 1}}"), HasSubstr("gates.a.figure"));
  EXPECT_THAT(refusal("gates: {a: {figure: x}}"), HasSubstr("has no bound"));
  EXPECT_THAT(refusal("gates:\n\n  a:\n    figure: x\n    at_most:\n    at_least: 1"),
              HasSubstr("gates.a.at_most is ''"));
  for (const char* wrong : {"x", "1x", "nan", "inf", "''", "1%", "[1]", "{b: 1}", "0x1"}) {
    EXPECT_THAT(refusal(std::string("gates: {a: {figure: x, at_most: ") + wrong + "}}"),
                HasSubstr("gates.a.at_most"))
        << wrong;
  }
  EXPECT_THAT(refusal("baseline: b\ngates: {a: {figure: x, drop_at_most: -1}}"),
              HasSubstr("not negative"));
  EXPECT_THAT(refusal("baseline: b\ngates: {a: {figure: x, drop_at_most: '%'}}"),
              HasSubstr("a percentage"));
  EXPECT_THAT(refusal("gates: {a: {figure: x, at_most: 1, groups: [b]}}"),
              HasSubstr("groups_differ_at_most, which this gate lacks"));
  EXPECT_THAT(refusal("gates: {a: {figure: x, rise_at_most: 1}}"), HasSubstr("--baseline"));
  EXPECT_THAT(refusal("gates: {a: &b {figure: x}}"), HasSubstr("anchors"));
  EXPECT_THROW(load_gates(folder_.path() / "none.yaml"), NotFound);
}

TEST_F(EvalGates, OneGateMayHaveSeveralBounds) {
  const GateFile file = gates(
      "baseline: sub/b.json\n"
      "gates:\n"
      "  a: {figure: loss, at_most: 3, rise_at_most: 1%}\n"
      "  b: {figure: tasks.t.acc, at_least: 0.1}\n");
  ASSERT_EQ(file.gates.size(), 3);
  EXPECT_EQ(file.baseline, folder_.path() / "sub/b.json");
  EXPECT_EQ(file.gates[1].name, "a");
  EXPECT_TRUE(file.gates[1].relative);
  EXPECT_FALSE(file.gates[2].relative);
  EXPECT_EQ(load_gates(folder_.path() / "gates.yaml", "c.json").baseline, "c.json");
}

TEST_F(EvalGates, BaselinesAreResults) {
  EXPECT_EQ(read_baseline(written(R"({"a": {"b": 1.5}, "c": "x", "d": [1]})", "b.json")).figures,
            (std::map<std::string, double>{{"a.b", 1.5}}));
  for (const char* wrong :
       {"", "[]", "7", "{", R"({"a": 1, "a": 2})", R"({"a.b": 1, "a": {"b": 1}})"}) {
    EXPECT_THAT(message_of<DataError>([&] { read_baseline(written(wrong, "b.json")); }),
                HasSubstr("b.json: "))
        << wrong;
  }
}

// Figures of different tests must not be compared.
TEST_F(EvalGates, ABaselineIsOfTheSameData) {
  const auto conditions = [](const std::string& text) {
    return result_conditions(json::parse(text));
  };
  const std::string whole = R"({"tokenizer": {"name": "t", "sha256": "aa"}, "samples": 9,
      "data": {"sha256": "bb", "sequence": 8, "documents": "joined"}, "task_sequence": 16,
      "tasks": {"t": {"kind": "arc", "sha256": "cc"}}})";
  const auto result = conditions(whole);
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    return message_of<DataError>([&] { check_comparable("b.json", conditions(text), result); });
  };
  EXPECT_NO_THROW(check_comparable("b.json", result, result));
  EXPECT_THAT(message("bb", "dd"), HasSubstr("b.json: its data.sha256 is dd"));
  EXPECT_THAT(message("8", "4"), HasSubstr("data.sequence is 4, but that of this evaluation is 8"));
  EXPECT_THAT(message("joined", "separate"), HasSubstr("data.documents"));
  EXPECT_THAT(message("aa", "dd"), HasSubstr("tokenizer.sha256"));
  EXPECT_THAT(message("9", "3"), HasSubstr("samples"));
  EXPECT_THAT(message("16", "12"), HasSubstr("task_sequence"));
  EXPECT_THAT(message("cc", "dd"), HasSubstr("tasks.t.sha256"));
  EXPECT_NO_THROW(check_comparable("b.json", conditions(R"({"task_sequence": 16})"), result))
      << "figures of data are not in both";
  EXPECT_NO_THROW(check_comparable(
      "b.json", conditions(R"({"task_sequence": 16, "tokenizer": {"name": "", "sha256": ""}})"),
      result))
      << "of an imported checkpoint";
  EXPECT_THAT(message_of<DataError>([&] { check_comparable("b.json", {}, result); }),
              HasSubstr("an older version wrote it"));
  EXPECT_NO_THROW(conditions(R"({"tasks": "x", "data": [], "tokenizer": null})"));
}

TEST_F(EvalGates, TheTableEscapesWhatFilesSay) {
  const std::string table = gates_table({{"a", "tasks.\x1b[2J", ">= 1", 0.5, "\x1b", false}});
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_THAT(table, AllOf(HasSubstr("NOT MET"), HasSubstr("found")));
}

}  // namespace
}  // namespace trireme
