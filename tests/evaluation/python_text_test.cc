// The expected texts are what Python 3.11 returns.
#include "src/evaluation/python_text.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(PythonText, CapitalizesTheFirstLetterAndLowersTheOthers) {
  EXPECT_EQ(python_capitalized(""), "");
  EXPECT_EQ(python_capitalized("she PUTS It on"), "She puts it on");
  EXPECT_EQ(python_capitalized("[header] A B"), "[header] a b");
  EXPECT_EQ(python_capitalized("élan ÉLAN ÄÖ"), "Élan élan äö");
  EXPECT_EQ(python_capitalized("жизнь Я"), "Жизнь я");
  EXPECT_EQ(python_capitalized("1st PLACE"), "1st place");
}

TEST(PythonText, StripsWhatPythonCallsSpace) {
  EXPECT_EQ(python_strip(" \t\n a b \r\n"), "a b");
  EXPECT_EQ(python_strip("\x1c\xc2\xa0x\xe3\x80\x80\x1f"), "x");
  EXPECT_EQ(python_strip("\xe2\x80\x8bx"), "\xe2\x80\x8bx");  // a zero-width space is none
  EXPECT_EQ(python_strip(" \n"), "");
  EXPECT_EQ(python_rstrip("  a  "), "  a");
}

TEST(PythonText, ReplacesFromLeftToRight) {
  EXPECT_EQ(python_replaced("a   b    c", "  ", " "), "a  b  c");
  EXPECT_EQ(python_replaced("x [title] y", " [title]", ". "), "x.  y");
  EXPECT_EQ(python_replaced("", "  ", " "), "");
}

}  // namespace
}  // namespace trireme
