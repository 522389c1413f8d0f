#include "src/study/redaction/anchor_redaction.h"

#include <string>

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(AnchorRedaction, AliasesBelowOrBehindASecretsName) {
  for (const char* alias :
       {"pin: *a", "secret: {k: *a}", "secret: {k: {l: 1}, m: [*a]}", "secret: {\n  k: *a\n}",
        "env:\n- {name: pin, value: *a}", "env:\n- {value: *a, name: pin}",
        "env:\n  - name: pin\n    value: *a", "c: [x, --pin, *a]", "c: [x, \"--pin\", *a, y]",
        "c:\n- --pin\n- *a", "c:\n  - \"--pin\"\n  - *a", "secrets:\n  k: *a",
        "secrets:\n  k:\n\n    b: 1\n    l: *a", "secrets:\n  - k: 1\n    l: *a",
        "secrets:\r\n  k: *a\r", "secrets:\n  <<: *a"}) {
    EXPECT_EQ(redact_anchors("q: &a x1\nb: 1\n" + std::string(alias) + "\n").text,
              "q: &a REDACTED\nb: 1\n" + std::string(alias) + "\n");
  }
}

TEST(AnchorRedaction, OtherAliasesStay) {
  for (const char* alias :
       {"user: *a", "secret: {k: 1}\nb: *a", "{secret: {k: 1}, b: *a}",
        "b: [{secret: [1]}, 1, {c: *a}]", "env:\n- {name: lr, value: *a}",
        "env:\n- {name: pin, value: 1}\n- {name: lr, value: *a}", "c: [x, --nodes, *a]",
        "c: [x, --pin, 1, *a]", "c:\n- --nodes\n- *a", "c:\n- --pin\n- 1\n- *a",
        "secrets:\n  k: 1\nb:\n  l: *a", "secret: 1\nb: {k: *a}"}) {
    const std::string text = "q: &a x1\nb: 1\n" + std::string(alias) + "\n";
    EXPECT_EQ(redact_anchors(text).text, text);
  }
}

TEST(AnchorRedaction, CommasBehindValuesInBracketsStay) {
  constexpr const char* kPairs[][2] = {
      {"a: {\n  q: &a x1,\n  pin: *a,\n}\n", "a: {\n  q: &a REDACTED,\n  pin: *a,\n}\n"},
      {"a: {\n  q: &a\n    x1 b\n}\npin: *a\n", "a: {\n  q: &a REDACTED\n}\npin: *a\n"},
      {"a: {q: &a x1, b: 1,\n  pin: *a}\n", "a: {q: &a REDACTED, b: 1,\n  pin: *a}\n"},
      {"a: [\n  &a x1,\n  b]\npin: *a\n", "a: [\n  &a REDACTED,\n  b]\npin: *a\n"},
      {"{a: [&a x1, b], pin: *a}\n", "{a: [&a REDACTED, b], pin: *a}\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact_anchors(text).text, expected);
    EXPECT_EQ(redact_anchors(expected).text, expected);
  }
}

}  // namespace
}  // namespace trireme
