#include "src/study/redaction/bracket_pairs.h"

#include <string>

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(BracketPairs, EndBehindTheirPartners) {
  const std::string text = "a [b {c] d} [e\nf ]} [g\n";
  const BracketPairs pairs(text);
  EXPECT_EQ(pairs.end(2), text.find('}') + 1) << "any bracket closes the last open one";
  EXPECT_EQ(pairs.end(5), text.find(']') + 1);
  EXPECT_EQ(pairs.end(12), text.find(']', 12) + 1);
  EXPECT_EQ(pairs.end(text.rfind('[')), text.size() - 1) << "the end of the line";
  EXPECT_EQ(BracketPairs("[").end(0), 1U);
}

// Returns the value behind "pin: ", or "none" if it is not in brackets of YAML.
std::string value_in(const std::string& text) {
  const std::size_t key = text.find("pin");
  const std::size_t begin = key + std::string_view("pin: ").size();
  const auto end = BracketPairs(text).end_of_flow_value(key, begin);
  return end ? text.substr(begin, *end - begin) : "none";
}

TEST(BracketPairs, ValuesEndWhereTheirEntriesDo) {
  for (const char* behind : {",\n}", ",\r\n b: 1}", ", b: 1}", ", \"b\": 1}", ",}", "}", " }",
                             "\n}", "\n  b: 1}", ", # b\n}", ",  # b\n}", "\n\n \"b\":1}"}) {
    for (const char* value :
         {"a", "a b", "a,b c", "a, b", "a\n  b", "'a, b: c'", "!x 'a, b: c'",
          "&x\n  \"a\n  , b: c\"", "# a, b: c\n d", "!x [a, b: c]", "\n  b: a", "x[1]", "a#b"}) {
      EXPECT_EQ(value_in(std::string("a: {\n pin: ") + value + behind), value) << behind;
    }
  }
  EXPECT_EQ(value_in("{\n pin: ,\n}"), "");
  EXPECT_EQ(value_in("{\n pin: \n}"), "");
}

TEST(BracketPairs, OtherBracketsHoldNoEntriesOfYaml) {
  for (const char* text : {"{pin: a}", "- {pin: a}", "b: [pin: a]", "[{pin: a}]",
                           "- \t[b, [pin: a]]", "{b: [c], pin: a}", "[b]: {\n# d\n pin: a\n}"}) {
    EXPECT_EQ(value_in(text), "a") << text;
  }
  for (const char* text : {"b {pin: a}", "b[pin: a]", "\"[pin: a]\"", "-{pin: a}", "{pin: a",
                           "{pin: a]", "[{b}]\npin: a", "]\npin: a}", "pin: a}"}) {
    EXPECT_EQ(value_in(text), "none") << text;
  }
}

}  // namespace
}  // namespace trireme
