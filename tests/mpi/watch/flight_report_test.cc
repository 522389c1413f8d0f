#include "mpi/watch/flight_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

using nlohmann::json;

FlightReport example() {
  FlightReport report;
  report.rank = 3;
  report.host = "n2";
  report.phase = "data_load";
  report.phase_seconds = 31.25;
  report.knows_group = true;
  report.entered = 4710;
  report.last = OperationLabel{
      OperationKind::broadcast, DType::bf16, SumOrder::tree, ReduceOp::max, 2, 4710, 99};
  report.finished = 4709;
  report.waiting = {"recv #3"};
  return report;
}

TEST(FlightReport, ComesBackWhole) {
  const FlightReport report = parse_flight_report(to_json(example()));
  EXPECT_EQ(to_json(report), to_json(example()));
  EXPECT_EQ(report.phase_seconds, 31.25);
  EXPECT_EQ(report.finished, 4709);
  ASSERT_TRUE(report.last.has_value());
  EXPECT_EQ(report.last->full_text(), example().last->full_text());
  EXPECT_EQ(report.last->root, 2);
  EXPECT_FALSE(report.overdue.has_value());
  FlightReport nothing;
  EXPECT_EQ(parse_flight_report(to_json(nothing)).entered, -1);
}

TEST(FlightQuestion, ComesBackWhole) {
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{4711}}) {
    const FlightQuestion question{7, 0xFEDCBA9876543210, number, "why \"so\""};
    const FlightQuestion read = parse_flight_question(to_json(question));
    EXPECT_EQ(read.asker, 7);
    EXPECT_EQ(read.group, question.group);
    EXPECT_EQ(read.number, number);
    EXPECT_EQ(read.why, question.why);
  }
}

// Each missing field, and each field of another type, is an error, never a crash or a guess.
TEST(FlightReport, RefusesDamage) {
  const json whole = json::parse(to_json(example()));
  const std::vector<json> wrong = {json(),    json(true),  json("text"),     json(-5),
                                   json(1.5), json(1e300), json::array({1}), json::object()};
  int refused = 0;
  for (const auto& [key, value] : whole.items()) {
    json without = whole;
    without.erase(key);
    EXPECT_THROW(parse_flight_report(without.dump()), DataError) << key;
    for (const json& other : wrong) {
      json changed = whole;
      changed[key] = other;
      try {
        parse_flight_report(changed.dump());
      } catch (const DataError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 60);
  for (const char* key : {"kind", "dtype", "order", "op"}) {
    json changed = whole;
    changed["last"][key] = 8;
    EXPECT_THROW(parse_flight_report(changed.dump()), DataError) << key;
  }
  const std::string text = to_json(example());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse_flight_report(text.substr(0, length)), DataError);
  }
  EXPECT_THROW(parse_flight_report(text + "x"), DataError);
  EXPECT_THROW(parse_flight_report(std::string(100000, '[')), DataError);
}

TEST(FlightQuestion, RefusesDamage) {
  for (const char* text : {"", "{}", "[]", "7",
                           R"({"asker": -1, "group": "0000000000000001", "number": 0, "why": ""})",
                           R"({"asker": 1, "group": "1", "number": 0, "why": ""})",
                           R"({"asker": 1, "group": "000000000000000g", "number": 0, "why": ""})",
                           R"({"asker": 1, "group": "0000000000000001", "number": -2, "why": ""})",
                           R"({"asker": 1, "group": "0000000000000001", "number": 0, "why": 3})"}) {
    EXPECT_THROW(parse_flight_question(text), DataError) << text;
  }
}

}  // namespace
}  // namespace trireme
