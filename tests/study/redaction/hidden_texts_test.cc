#include "src/study/redaction/hidden_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string without(const std::string& list, const std::string& text) {
  return HiddenTexts(list).apply(text).text;
}

TEST(HiddenTexts, AreReplacedWhereverTheyStand) {
  EXPECT_EQ(without("Falcon\nJane Doe\n", "falcon-7: JANE DOE ran /x/FALCON9.log"),
            "REDACTED-7: REDACTED ran /x/REDACTED9.log");
  EXPECT_EQ(without("abc", "abcabc ab"), "REDACTEDREDACTED ab");
  EXPECT_EQ(without("abc def\ndef ghi", "an abc def ghi"), "an REDACTED");
  EXPECT_EQ(without("abc", ""), "");
  EXPECT_EQ(without("abc", "ab"), "ab");
  EXPECT_EQ(without("M\u00fcller", "von M\u00fcller"), "von REDACTED");
  EXPECT_EQ(HiddenTexts("abc").apply("abc Abc ab c").secrets, 2);
}

TEST(HiddenTexts, TheLongestOfSeveralIsReplaced) {
  EXPECT_EQ(without("pro\nproject x\nproject", "project xy, project, prose"),
            "REDACTEDy, REDACTED, REDACTEDse");
}

TEST(HiddenTexts, BlanksAndEmptyLinesOfTheListDoNotCount) {
  EXPECT_EQ(without("\r\n  abc \t\r\n\n", "an abc"), "an REDACTED");
  EXPECT_EQ(without("\xEF\xBB\xBF"
                    "abc\rdef",
                    "abc def"),
            "REDACTED REDACTED");
}

TEST(HiddenTexts, AreFoundAsJsonWritesThem) {
  EXPECT_EQ(without("a\"b\\c", R"({"x": "a\"b\\c"} a"b\c)"), R"({"x": "REDACTED"} REDACTED)");
  EXPECT_EQ(without("M\u00fcller", R"({"a": "M\u00fcller", "b": "M\u00FCLLER x"})"),
            R"({"a": "REDACTED", "b": "REDACTED x"})");
  EXPECT_EQ(without("a/b\nA&B", R"(["a\/b", "A\u0026B"])"), R"(["REDACTED", "REDACTED"])");
  EXPECT_EQ(without("\U0001F600x", R"("\ud83d\ude00x \ud83d")"), R"("REDACTED \ud83d")");
  EXPECT_EQ(without("C:\\users\\tom", R"(C:\users\tom \u12)"), R"(REDACTED \u12)");
  EXPECT_EQ(without("\xff\xfe\xfd", "x\xff\xfe\xfdy"), "xREDACTEDy") << "no UTF-8";
}

TEST(HiddenTexts, MayHoldSecretsThatAreGone) {
  EXPECT_EQ(without("by Zeus, password: a1", redact("by Zeus, password: a1").text), "REDACTED");
  EXPECT_EQ(without("hf_abcdefghijklmnopqrstuvwx", "a REDACTED b"), "a REDACTED b");
}

TEST(HiddenTexts, ListsThatMeanNothingAreRefused) {
  for (const char* list : {"", "\n \n"}) {
    EXPECT_THAT(message_of<DataError>([&] { HiddenTexts{list}; }), HasSubstr("no line"));
  }
  EXPECT_THAT(message_of<DataError>([&] { HiddenTexts{"secret\nxy\n"}; }),
              AllOf(HasSubstr("line 2 has 2 bytes"), Not(HasSubstr("xy"))));
  EXPECT_THAT(message_of<DataError>([&] { HiddenTexts{std::string_view("a\0b\0c\0", 6)}; }),
              HasSubstr("UTF-8"));
  EXPECT_THAT(message_of<DataError>([&] { HiddenTexts{std::string(5000, 'x')}; }),
              AllOf(HasSubstr("line 1 has 5000 bytes"), Not(HasSubstr("xxx"))));
  std::string many;
  for (std::size_t i = 0; i <= HiddenTexts::kMostTexts; ++i) {
    many += std::to_string(100 + i) + "\n";
  }
  EXPECT_THAT(message_of<DataError>([&] { HiddenTexts{many}; }), HasSubstr("more than 100000"));
}

TEST(HiddenTexts, NoneChangeNothing) { EXPECT_EQ(HiddenTexts().apply("abc").text, "abc"); }

}  // namespace
}  // namespace trireme
