#include "src/study/redaction/toml_tables.h"

#include <string>

#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(TomlTables, HeadersInAllForms) {
  for (const std::string header : {"[secrets]", "[db.secrets] # x", "[db . secrets]",
                                   "[ \"db\".\"secrets\" ]", "['my secrets']", "[[a.\"secrets\"]]",
                                   "[secrets.\"b]c\"]", "  [secrets]", "\t[[db.secrets]]\r"}) {
    const std::string text = "[a]\n\nb = 1\n" + header + "\na = \"x1\"\n  b = 'x2'\n";
    EXPECT_EQ(redact(text + "[c]\nd = 1\n").text,
              "[a]\n\nb = 1\n" + header + "\na = \"REDACTED\"\n  b = 'REDACTED'\n[c]\nd = 1\n");
    EXPECT_EQ(redact(text + "  [c]\nd = 1\n").text.find("d = 1\n"),
              redact(text + "[c]\nd = 1\n").text.find("d = 1\n") + 2);
  }
}

TEST(TomlTables, KeysInQuotes) {
  EXPECT_EQ(redact("[secrets]\n\"a b\" = \"x1\"\n 'c.d' = 5 # e\n\"f\\\"g\" = [\n  \"x2\"\n]\n"
                   "[b]\n\"a b\" = 5\n")
                .text,
            "[secrets]\n\"a b\" = \"REDACTED\"\n 'c.d' = REDACTED\n\"f\\\"g\" = REDACTED\n"
            "[b]\n\"a b\" = 5\n");
  EXPECT_EQ(redact("[secrets]\n\"a b\" = \"x\"").text, "[secrets]\n\"a b\" = \"REDACTED\"");
}

TEST(TomlTables, OtherLinesBeginNoTable) {
  for (const char* text :
       {"x = [\n  [\"secrets\"]\n]\ny = 1\n", "x = [\n  [\"a\"],\n  [\"secrets\"]\n]\ny = 1\n",
        "[a secrets]\ny = 1\n", "[secrets, a]\ny = 1\n", "[secrets] x\ny = 1\n",
        "[sections]\n\"a b\" = 1\n", "[\"secrets]\ny = 1\n", "[secrets.]x\n[", "[", "[[", "[\"a"}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

TEST(TomlTables, TakesLinearTime) {
  for (const char* const part : {"[secrets]\n", "  [secrets]\n", "  [secrets]\n  [a],\n", "[\"",
                                 "\"a", "\n  [\"secrets\"],"}) {
    std::string many = "[secrets]\n";
    while (many.size() < 200'000) {
      many += part;
    }
    EXPECT_GT(redact(many).text.size(), 0U) << part;
  }
}

}  // namespace
}  // namespace trireme
