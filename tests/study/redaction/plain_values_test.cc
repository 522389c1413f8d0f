#include "src/study/redaction/plain_values.h"

#include <string>

#include <gtest/gtest.h>

#include "src/base/config_tree.h"
#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

void expect_values(const std::string& text, const std::string& expected) {
  EXPECT_EQ(redact(text).text, expected);
  EXPECT_EQ(redact(expected).text, expected);
}

TEST(PlainValues, MayBeginWithSignsOfOperators) {
  constexpr const char* kPairs[][2] = {
      {"PASSWORD=+x1", "PASSWORD=REDACTED"},
      {"PASSWORD=?x", "PASSWORD=REDACTED"},
      {"PASSWORD=|x", "PASSWORD=REDACTED"},
      {"PASSWORD=:x:=y", "PASSWORD=REDACTED"},
      {"aws_secret_access_key=+x1/abc\n", "aws_secret_access_key=REDACTED\n"},
      {"AccountName=x;AccountKey=+x1==;E=core", "AccountName=x;AccountKey=REDACTED;E=core"},
      {"x --password=+x1 --n 4", "x --password=REDACTED --n 4"},
      {"login(user=x, password=+abc7)", "login(user=x, password=REDACTED"},
      {R"({"env":["DB_PASS=+x1"]})", R"({"env":["DB_PASS=REDACTED"]})"},
      {"curl -d \"user=joe&password=+x1\" h", "curl -d \"user=joe&password=REDACTED\" h"},
      {"#SBATCH --export=ALL,DB_PASS=+x1,X=1", "#SBATCH --export=ALL,DB_PASS=REDACTED,X=1"},
      {"a: \"curl --oauth2-token=+x1 h --api-key=?x5\"\n",
       "a: \"curl --oauth2-token=REDACTED h --api-key=REDACTED\"\n"},
      {"PASSWORD += +x1", "PASSWORD += REDACTED"},
      {"PASSWORD ||= x1", "PASSWORD ||= REDACTED"},
      {"PASSWORD ::= x1", "PASSWORD ::= REDACTED"},
  };
  for (const auto& [text, expected] : kPairs) {
    expect_values(text, expected);
  }
}

TEST(PlainValues, GoOnBehindBackslashes) {
  constexpr const char* kPairs[][2] = {
      {R"(export DB_PASS=Sun\Moon X=1)", "export DB_PASS=REDACTED X=1"},
      {R"(export DB_PASS=\a1x X=1)", "export DB_PASS=REDACTED X=1"},
      {R"(export DB_PASS=a\\b\\\c X=1)", "export DB_PASS=REDACTED X=1"},
      {R"(export DB_PASS=a\$b\ c\!d\"e X=1)", "export DB_PASS=REDACTED X=1"},
      {R"(x --password S3c\ret!x --n 4)", "x --password REDACTED --n 4"},
      {R"(x --password S3c,\ret --n 4)", "x --password REDACTED --n 4"},
      {R"(10:00 INFO password=CORP\new user=x)", "10:00 INFO password=REDACTED user=x"},
      {R"(10:00 INFO didn't end, password=CORP\new user=x)",
       "10:00 INFO didn't end, password=REDACTED user=x"},
      {R"(a: {password: a1\x1, lr: 1})", "a: {password: REDACTED, lr: 1}"},
      {R"(curl -H "X-Auth-Token: a1\x1" h)", R"(curl -H "X-Auth-Token: REDACTED" h)"},
      {R"(machine h login j password \a1\x1)", "machine h login j password REDACTED"},
      {R"(the password is a1\x1 now)", "the password is REDACTED now"},
      {R"(Password for root: a1\x1)", "Password for root: REDACTED"},
      // In texts in quotes
      {R"(x: ['A=1 DB_PASS=x1\nB=2\tC'])", R"(x: ['A=1 DB_PASS=REDACTED\nB=2\tC'])"},
      {R"({"a": "x DB_PASS=x1\", "b": 2)", R"({"a": "x DB_PASS=REDACTED\", "b": 2)"},
      {R"(x 'the pin is a1z\nthe end)", R"(x 'the pin is REDACTED\nthe end)"},
      {R"(http://h/?pin=a\&b=1)", R"(http://h/?pin=REDACTED&b=1)"},
  };
  for (const auto& [text, expected] : kPairs) {
    expect_values(text, expected);
  }
}

TEST(PlainValues, MayBeCallsOrSeveralTextsInQuotes) {
  constexpr const char* kPairs[][2] = {
      {"Config { token: Some(\"x1\"), n: 1 }", "Config { token: REDACTED, n: 1 }"},
      {"{password: Secret(\"x1\")}", "{password: REDACTED}"},
      {"{password: Some(String::from(\"x (1\")), n: 1}", "{password: REDACTED, n: 1}"},
      {"{password: f('x1', n) }", "{password: REDACTED}"},
      {"11-30 INFO x password: Some(\"x1\") y", "11-30 INFO x password: REDACTED"},
      {"11-30 INFO x password=Some(\"x1\") y", "11-30 INFO x password=REDACTED y"},
      {"11-30 INFO x password=Some(\"x1", "11-30 INFO x password=REDACTED"},
      {"{password: \"a\" \"x1\", b: 1}", "{password: \"REDACTED\", b: 1}"},
      {"{password: \"a\" \"b\": 1}", "{password: \"REDACTED\" \"b\": 1}"},
  };
  for (const auto& [text, expected] : kPairs) {
    expect_values(text, expected);
  }
}

// Escaped backslashes may stand before the last quote.
TEST(PlainValues, QuotedTextsStayValidYaml) {
  constexpr const char* kPairs[][2] = {
      {R"(pin: "ab\\")", R"(pin: "REDACTED")"},
      {R"(pin: "ab\"c\\\\")", R"(pin: "REDACTED")"},
      {R"(pin: 'C:\')", R"(pin: 'REDACTED')"},
      {R"(pin: 'C:\'  # c)", R"(pin: 'REDACTED'  # c)"},
      {R"("a": "PASSWORD=Sx9\"")", R"("a": "PASSWORD=REDACTED")"},
      {R"("a": "PASSWORD=Sx9\\")", R"("a": "PASSWORD=REDACTED")"},
  };
  for (const auto& [line, redacted] : kPairs) {
    const std::string expected = std::string(redacted) + "\nlr: 1\nuser: \"x\"\n";
    expect_values(std::string(line) + "\nlr: 1\nuser: \"x\"\n", expected);
    EXPECT_EQ(parse_config(expected, "").size(), 3U);
  }
  expect_values(R"(x "{\"pin\": \"ab\\\"c\\\\\", \"lr\": 1}")",
                R"(x "{\"pin\": \"REDACTED\", \"lr\": 1}")");
}

TEST(PlainValues, EndBeforeAnAmpersandInUrlsOnly) {
  constexpr const char* kPairs[][2] = {
      {"Server=db,1433;User Id=sa;Password=a&b;Encrypt=yes",
       "Server=db,1433;User Id=sa;Password=REDACTED;Encrypt=yes"},
      {"DRIVER={x};UID=sa;PWD=a&b;", "DRIVER={x};UID=sa;PWD=REDACTED;"},
      {"http://h/?a=1;pin=x&b=1", "http://h/?a=1;pin=REDACTED&b=1"},
      {"curl -d \"a=1&pin=x&b=1\" h", "curl -d \"a=1&pin=REDACTED&b=1\" h"},
      {"http://h/?token=x1:&b=1", "http://h/?token=REDACTED&b=1"},
      {"http://h/?token=x1:\n", "http://h/?token=REDACTED\n"},
      {"A=x;PWD=/home", "A=x;PWD=/home"},
  };
  for (const auto& [text, expected] : kPairs) {
    expect_values(text, expected);
  }
}

TEST(PlainValues, TakeLinearTime) {
  for (const char* const part : {"pin=\\a", "pin is a\\b", "pin=a(", "pin=a(\"", "pin: \"a\" \"",
                                 "pin=a(\\\\", "pin=\\\\", ";pin=a", "\"pin=\\", "\"pin=a\\\""}) {
    std::string many = "x\n";
    while (many.size() < 200'000) {
      many += part;
    }
    EXPECT_GT(redact(many).text.size(), 0U) << part;
  }
}

}  // namespace
}  // namespace trireme
