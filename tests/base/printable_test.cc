#include "src/base/printable.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "step-00000100", "größe 3 × 4", "日本語", "a\\n", "\U0001F6A2"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;owned\x07"), "\\x1b[2J\\x1b]0;owned\\x07");
  EXPECT_EQ(printable("a\r\nb\tc\x7f"), "a\\r\\nb\\tc\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");  // the one-byte form of ESC [
  EXPECT_EQ(printable("\u202egnp.exe"), "\\u202egnp.exe");
  EXPECT_EQ(printable("\u2028"), "\\u2028");
  EXPECT_EQ(printable("\U000e0001"), "\\U000e0001");
}

TEST(Printable, WritesOutWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // overlong encoding
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");  // overlong encoding
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");  // truncated
}

TEST(Printable, KeepsLinesWhereThereAreSeveral) {
  EXPECT_EQ(printable_lines("a\n\tb\r\x1b"), "a\n\tb\\r\\x1b");
}

TEST(Printable, APieceMayEndWithinACharacter) {
  const std::string text = "größe 日本\x1b[2J\u009b \U0001F6A2\n\xff\xe6\x97z\xf0\x9f\x9a";
  for (std::size_t length = 1; length <= text.size(); ++length) {
    PrintableStream stream;
    std::string shown;
    for (std::size_t begin = 0; begin < text.size(); begin += length) {
      shown += stream.add(std::string_view(text).substr(begin, length));
    }
    EXPECT_EQ(shown + stream.rest(), printable_lines(text)) << length;
    EXPECT_EQ(stream.rest(), "");
  }
  PrintableStream stream;
  EXPECT_EQ(stream.add("\xc3"), "");
  EXPECT_EQ(stream.add("\xb6."), "ö.");
}

}  // namespace
}  // namespace trireme
