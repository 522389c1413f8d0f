#include "src/study/redaction/scalar_redaction.h"

#include <gtest/gtest.h>

#include "src/base/config_tree.h"

namespace trireme {
namespace {

TEST(ScalarRedaction, KeepsYamlValid) {
  constexpr const char* kPairs[][2] = {
      {R"(a: "curl -H \"Authorization: Bearer Abc123def456\" h")",
       R"(a: "curl -H \"Authorization: REDACTED\" h")"},
      {R"(a: "curl -u jane:\"x\" h"  # c)", R"(a: "curl -u REDACTED h"  # c)"},
      {R"(a: 'curl -H "Cookie: a=b; c=d"')", R"(a: 'curl -H "Cookie: REDACTED"')"},
      {R"(a: 'sshpass -p ''x'' ssh x')", R"(a: 'sshpass -p ''REDACTED'' ssh x')"},
      {R"(a: "PASSWORD=\"x")", R"(a: "PASSWORD=\"REDACTED")"},
      {R"(a: "x --password y\\")", R"(a: "x --password REDACTED\\")"},
      {R"(a: x --password y\)", R"(a: x --password REDACTED\)"},
      {R"(a: "it's \u0041")", R"(a: "it's \u0041")"},
      {R"(password: 'it''s x')", R"(password: 'REDACTED')"},
  };
  for (const auto& [line, expected] : kPairs) {
    const std::string after = std::string(expected) + "\nb: 1\n";
    EXPECT_EQ(redact(std::string(line) + "\nb: 1\n").text, after);
    EXPECT_EQ(redact(after).text, after);
    EXPECT_EQ(parse_config(after, "").size(), 2U) << after;
  }
}

TEST(ScalarRedaction, FindsWordsOfCommandsInLists) {
  constexpr const char* kPairs[][2] = {
      {"a:\n- x\n- --password\n- y\n- z\n", "a:\n- x\n- --password\n- REDACTED\n- z\n"},
      {"a:\n  - curl\n  - -u\n  - jane:x\n  - h\n", "a:\n  - curl\n  - -u\n  - REDACTED\n  - h\n"},
      {"a:\n  - \"--token\"\n  - \"x\"\n  - 'h'\n",
       "a:\n  - \"--token\"\n  - \"REDACTED\"\n  - 'h'\n"},
      {"- sshpass\n- -p\n- x\n- h\n", "- sshpass\n- -p\n- REDACTED\n- h\n"},
      {"- --password=x\n- --api-key=y\n- train\n",
       "- --password=REDACTED\n- --api-key=REDACTED\n- train\n"},
      {"- x\n- -p\n- y\n- --password\n- --pin\n", "- x\n- -p\n- y\n- --password\n- --pin\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
  }
}

TEST(ScalarRedaction, CommentsDoNotEndABlock) {
  EXPECT_EQ(redact("password:\n# c\n  x\nb: 1\n").text, "password: REDACTED\nb: 1\n");
  EXPECT_EQ(redact("secret:\n  a: 1\n# c\n  b: x\n# d\nc: 1\n").text,
            "secret: REDACTED\n# d\nc: 1\n");
}

}  // namespace
}  // namespace trireme
