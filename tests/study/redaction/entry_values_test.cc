#include "src/study/redaction/entry_values.h"

#include <string>

#include <gtest/gtest.h>

#include "src/base/config_tree.h"
#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

// The commas and brackets behind values without quotes stay.
TEST(EntryValues, MappingsOnSeveralLinesStayValidYaml) {
  constexpr const char* kPairs[][2] = {
      {"user: joe,\n  pin: x1,\n", "user: joe,\n  pin: REDACTED,\n"},
      {"user: joe,\r\n  pin: x1\r\n", "user: joe,\r\n  pin: REDACTED\r\n"},
      {"pin: x1, user: joe,\n  pass: x2 ", "pin: REDACTED, user: joe,\n  pass: REDACTED "},
      {"pin: two\n  x1 words,\n  user: joe", "pin: REDACTED,\n  user: joe"},
      {"pin:\n    x1,\n  user: joe", "pin: REDACTED,\n  user: joe"},
      {"pin: # a, b\n    x1,\n  user: joe", "pin: REDACTED,\n  user: joe"},
      {"\"pin\": x1,\n  user: joe", "\"pin\": \"REDACTED\",\n  user: joe"},
      {"pin: [a,\n x1],\n  secret: {a: b,\n c: x2},\n  user: joe",
       "pin: REDACTED,\n  secret: REDACTED,\n  user: joe"},
      {"? pin\n  : x1,\n  user: joe", "? pin\n  : REDACTED,\n  user: joe"},
      {"Authorization: Basic x1,\n  user: joe", "Authorization: REDACTED,\n  user: joe"},
      {"tokens: 5,\n  pass: null,\n  pin: ,\n  secret:\n",
       "tokens: 5,\n  pass: null,\n  pin: ,\n  secret:\n"},
  };
  for (const auto& [inside, redacted] : kPairs) {
    for (const char* open : {"", "[", "[\n  # b\n  "}) {
      const std::string before = std::string("db: ") + open + "{\n  ";
      const std::string after = *open == '\0' ? "}\nc: 1\n" : "}]\nc: 1\n";
      const std::string expected = before + redacted + after;
      EXPECT_EQ(redact(before + inside + after).text, expected);
      EXPECT_EQ(redact(expected).text, expected);
      EXPECT_EQ(redact(expected).secrets, 0) << expected;
      EXPECT_GE(parse_config(expected, "").size(), 2U) << expected;
    }
  }
}

TEST(EntryValues, ValuesOutsideOfMappingsEndWithTheirLines) {
  constexpr const char* kPairs[][2] = {
      {"a: \"x [y\"\npin: x1, x2,\nb: \"z]\"\n", "a: \"x [y\"\npin: REDACTED\nb: \"z]\"\n"},
      {"loading {\npin: x1, x2,\nb: 1\n", "loading {\npin: REDACTED\nb: 1\n"},
      {"a: {\npin: x1\nb: 1\n}\n", "a: {\npin: REDACTED\nb: 1\n}\n"},
      {"{\nPIN=x1,\n}\n", "{\nPIN=REDACTED\n}\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(EntryValues, BracketsInHarmlessOnesAreJudgedByTheirOwnNames) {
  constexpr const char* kPairs[][2] = {
      {"tokens: [1, tokens: [2, pass: [3]]]\n", "tokens: [1, tokens: [2, pass: [3]]]\n"},
      {"pass: [forward, tokens: [1, pass: [-]]]\n", "pass: [forward, tokens: [1, pass: [-]]]\n"},
      {"tokens: [1, pin: [2]]\n", "tokens: [1, pin: REDACTED]\n"},
      {"pass: [tokens: [forward], 1]\n", "pass: [tokens: REDACTED, 1]\n"},
      {"tokens: [1 tokens: [\nx1]\n", "tokens: [1 tokens: REDACTED\n"},
      {"tokens: [1]\ntokens: [x1]\n", "tokens: [1]\ntokens: REDACTED\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
  }
}

TEST(EntryValues, TextsBelowMayHoldSignsOfComments) {
  constexpr const char* kPairs[][2] = {
      {"pin: |\n  # x1\nb: 1\n", "pin: REDACTED\nb: 1\n"},
      {"a:\n  pin: >-\n    x1\n    # x2\n  # c\nb: 1\n", "a:\n  pin: REDACTED\n  # c\nb: 1\n"},
      {"# pin:\n# c\n    x1\nb: 1\n", "# pin: REDACTED\nb: 1\n"},
      {"# pin:\n# secret:\n\n# c\nb: 1\n", "# pin:\n# secret:\n\n# c\nb: 1\n"},
      {"# pin:\n# secret: # d\n    x1\n# c\nb: 1\n", "# pin: REDACTED\n# c\nb: 1\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

TEST(EntryValues, TakeLinearTime) {
  for (const std::string name : {"tokens: [1, ", "pass: [tokens: [1], ", "# pin:\n"}) {
    std::string many;
    std::string behind = "\n";
    while (many.size() < 200'000) {
      many += name;
      behind += ']';
    }
    EXPECT_EQ(redact(many + behind).text, many + behind);
  }
  for (const char* const part :
       {"pin: [\n", "pin={\n", "[pin]", "pin -> ", "a: &b [\npin: *b\n", "- ", "- ? ",
        "&pin: ", "&pin=", "tokens: ", "tokens:", "http://h/?sig=a&", "tokens==5,", "pin=,"}) {
    std::string many = "x\n";
    while (many.size() < 200'000) {
      many += part;
    }
    EXPECT_GT(redact(many).text.size(), 0U) << part;
  }
}

}  // namespace
}  // namespace trireme
