#include "src/study/redaction/program_text.h"

#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(ProgramText, StatementsAndTypesStay) {
  for (const char* text :
       {"if token == eos:\n    loss = 2.5\n    step = 7\nlr = 0.1\n",
        "  while token == eos:  # c\n    loss = 2.5\n", "for token in tokens: print(token)\n",
        "${DB_PASS:?must be set} ${DB_PASS:+x}", "for token in tokens:\n  loss = 2.5\n",
        "user,password:str\n", "a;pin:int;b\n",
        "I_MPI_PIN=1\nI_MPI_PIN_DOMAIN=auto\nI_MPI_PIN_ORDER=bunch\n"}) {
    EXPECT_EQ(redact(text).text, text);
  }
}

TEST(ProgramText, SecretsInThemAreFound) {
  constexpr const char* kPairs[][2] = {
      {"if password == \"x1\":\n    loss = 2.5\n",
       "if password == \"REDACTED\":\n    loss = 2.5\n"},
      {"if password == x1y:\n    loss = 2.5\n", "if password == REDACTED\n    loss = 2.5\n"},
      {"for x in y: password = x1\n", "for x in y: password = REDACTED\n"},
      {"Password for token: x1y\n", "Password for token: REDACTED\n"},
      {"user,password:str,loss\njoe,a1b,2.5\n", "user,password:str,loss\njoe,REDACTED,2.5\n"},
      {"password:strx1\n", "password:REDACTED\n"},
  };
  for (const auto& [text, expected] : kPairs) {
    EXPECT_EQ(redact(text).text, expected);
    EXPECT_EQ(redact(expected).text, expected);
  }
}

}  // namespace
}  // namespace trireme
