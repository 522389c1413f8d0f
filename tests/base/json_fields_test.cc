#include "src/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ParseJson, RefusesWhatJsonLeavesOpen) {
  EXPECT_THAT(message_of<DataError>([] { parse_json(R"({"a": 1, "a": 2})"); }), HasSubstr("twice"));
  EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": 2}])").size(), 2);
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(message_of<DataError>([&] { parse_json(deep); }), HasSubstr("deeper"));
  for (const char* text : {"", "\xFF\xFE", "{", "[1,]", "{} {}", "1e999"}) {
    EXPECT_THAT(message_of<DataError>([&] { parse_json(text); }), HasSubstr("not JSON")) << text;
  }
}

TEST(ParseJson, SaysWhereAndNotInTheLibrarysWords) {
  const auto refusal = [](std::string_view text) {
    return message_of<DataError>([&] { parse_json(text); });
  };
  EXPECT_EQ(refusal(""), "not JSON: the file is empty");
  EXPECT_THAT(refusal(R"({"schema": 2, "res)"), HasSubstr("breaks off after 18 bytes"));
  EXPECT_THAT(refusal("{\n \"a\": NaN}"), HasSubstr("not JSON: line 2, column 7: "));
  EXPECT_THAT(refusal(std::string_view("\0\0\0", 3)), HasSubstr("line 1, column 1"));
  EXPECT_THAT(refusal(std::string_view("\0\0\0", 3)), HasSubstr("bytes of zero"));
  for (const char* text : {"", "{", "NaN", "1e999", "\xFF"}) {
    EXPECT_THAT(refusal(text), Not(HasSubstr("exception"))) << text;
  }
}

// A link may have led to another file, whose words would stand in messages and logs.
TEST(ParseJson, QuotesNothing) {
  for (const char* text : {R"({"key": "a secret)", "{'secret': 1}", "secret", R"([1, secret])",
                           R"({"secret"; expected secret)"}) {
    const std::string told = message_of<DataError>([&] { parse_json(text); });
    EXPECT_THAT(told, AllOf(HasSubstr("not JSON: "), Not(HasSubstr("secret")))) << text;
  }
  EXPECT_THAT(message_of<DataError>([] { parse_json("[1 2]"); }), HasSubstr("; expected ']'"));
}

// The text has 36 MB and would take more than 1 GiB once parsed. It is refused before its syntax
// error is reached.
TEST(ParseJson, RefusesWhatWouldFillTheMemory) {
  std::string wide = "[";
  for (int i = 0; i < 12'000'000; ++i) {
    wide += "\"\",";
  }
  EXPECT_THAT(message_of<DataError>([&] { parse_json(wide); }), HasSubstr("memory"));
}

TEST(JsonFields, ComeAsTheyAre) {
  const auto object =
      parse_json(R"({"t": "x", "n": 7, "yes": true, "row": [1, 2], "inner": {"t": ""}})");
  EXPECT_EQ(text_field(object, "t"), "x");
  EXPECT_EQ(count_field(object, "n"), 7);
  EXPECT_EQ(count_field(object, "n", 7, 7), 7);
  EXPECT_TRUE(flag_field(object, "yes"));
  EXPECT_EQ(counts_field(object, "row"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(text_field(object_field(object, "inner"), "t"), "");
}

TEST(JsonFields, AreRefusedByName) {
  const auto object = parse_json(
      R"({"n": 7, "minus": -1, "real": 1.5, "large": 18446744073709551615, "row": [1, -2]})");
  EXPECT_THAT(message_of<DataError>([&] { field(object, "none"); }),
              HasSubstr("'none' is missing"));
  EXPECT_THAT(message_of<DataError>([&] { field(parse_json("[]"), "none"); }),
              HasSubstr("'none' is missing"));
  EXPECT_THAT(message_of<DataError>([&] { text_field(object, "n"); }),
              HasSubstr("'n' is not a string"));
  EXPECT_THAT(message_of<DataError>([&] { object_field(object, "n"); }), HasSubstr("'n'"));
  EXPECT_THAT(message_of<DataError>([&] { array_field(object, "n"); }), HasSubstr("'n'"));
  EXPECT_THAT(message_of<DataError>([&] { flag_field(object, "n"); }), HasSubstr("'n'"));
  EXPECT_THAT(message_of<DataError>([&] { count_field(object, "n", 8); }),
              HasSubstr("'n' is 7, not a whole"));
  EXPECT_THAT(message_of<DataError>([&] { count_field(object, "n", 0, 6); }),
              HasSubstr("from 0 to 6"));
  EXPECT_THAT(message_of<DataError>([&] { count_field(object, "n", 0, -1); }), HasSubstr("'n'"));
  for (const char* name : {"minus", "real", "large", "row"}) {
    EXPECT_THAT(message_of<DataError>([&] { count_field(object, name); }), HasSubstr(name));
  }
  EXPECT_THAT(message_of<DataError>([&] { counts_field(object, "row"); }),
              HasSubstr("'row' is -2"));
}

}  // namespace
}  // namespace trireme
