#include "src/study/redaction/table_numbers.h"

#include <string>

#include <gtest/gtest.h>

#include "src/study/redaction/redaction.h"

namespace trireme {
namespace {

TEST(TableNumbers, StayBehindCellsWithSecrets) {
  constexpr const char* kPairs[][2] = {
      {"a,Authorization: Bearer abcdefghij,2.5", "a,Authorization: REDACTED,2.5"},
      {"b,the password is Sx9206,2.6", "b,the password is REDACTED,2.6"},
      {"c,DB_PASS=x,2.7", "c,DB_PASS=REDACTED,2.7"},
      {"c,5,2.7e-3", "c,5,2.7e-3"},
      {"DB_PASS=x,-5,2.7", "DB_PASS=REDACTED,-5,2.7"},
      // Not numbers, not rows, or parts of texts that may go on
      {"c,DB_PASS=x,y2", "c,DB_PASS=REDACTED"},
      {"c,DB_PASS=x,2,7", "c,DB_PASS=REDACTED"},
      {"c,DB_PASS=\\x,7", "c,DB_PASS=REDACTED"},
  };
  for (const auto& [row, expected] : kPairs) {
    for (const std::string header : {"name,note,loss\n", "x\na,b,c\r\n1,2,3\n"}) {
      for (const std::string end : {"\nd,e,2.8\n", "\r\n"}) {
        EXPECT_EQ(redact(header + row + end).text, header + expected + end);
        EXPECT_EQ(redact(header + expected + end).text, header + expected + end);
      }
    }
  }
  EXPECT_EQ(redact("a;b;c\nx;DB_PASS=y;5\n").text, "a;b;c\nx;DB_PASS=REDACTED;5\n");
  EXPECT_EQ(redact("x, y\nc,DB_PASS=x,7\n").text, "x, y\nc,DB_PASS=REDACTED\n");
}

}  // namespace
}  // namespace trireme
