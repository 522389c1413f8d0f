#include "io/data/line_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

const std::string kField = "text";

std::string fault_of(LineText& lines, const std::string& line) {
  try {
    return "none: " + lines.text_in(line);
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(LineText, TakesTheFieldOfTheOutermostObject) {
  LineText lines(kField);
  EXPECT_EQ(lines.text_in(R"({"text": "a"})"), "a");
  EXPECT_EQ(lines.text_in(R"( {"id": 1, "in": {"text": "b"}, "text" : "" } )"), "");
  EXPECT_EQ(lines.text_in(R"({"text": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000é"})"),
            std::string("\"\\/\b\f\n\r\t\u00e9\U0001F600\0\u00e9", 17));
  EXPECT_EQ(lines.text_in(R"({"\u0074ext": "c"})"), "c");
}

TEST(LineText, ReadsWhatItsFastReaderDoesNot) {
  LineText lines(kField);
  EXPECT_EQ(lines.text_in(R"({"n": 123456789012345678901234567890, "text": "a"})"), "a");
  EXPECT_EQ(lines.text_in("\xEF\xBB\xBF{\"text\": \"bom\"}"), "bom");
  const std::string deep = std::string(31, '[') + std::string(31, ']');
  EXPECT_EQ(lines.text_in(R"({"x": )" + deep + R"(, "text": "a"})"), "a");
  const std::string large((std::size_t{5} << 20), 'x');
  EXPECT_EQ(lines.text_in(R"({"text": ")" + large + "\"}"), large);
  EXPECT_EQ(lines.text_in(R"({"text": "after that"})"), "after that");
}

TEST(LineText, SaysWhatIsWrong) {
  LineText lines(kField);
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"txt": "a"})", "there is no text field 'text': name the field"},
           {R"({"text": 1})", "there is no text field"},
           {R"(["text", "a"])", "there is no text field"},
           {R"({"text": "a", "text": "b"})", "the field 'text' occurs twice"},
           {R"({"text": "a", "text": 1})", "the field 'text' occurs twice"},
           {R"({"text": "a"} x)", "not JSON"},
           {R"({"text": "a")", "not JSON"},
           {"{\"text\": \"\xFF\"}", "not JSON"},
           {"{\"text\": \"a\nb\"}", "not JSON"},
           {R"({"text": "\ud800"})", "not JSON"},
           {R"({"text": "a", "n": 01})", "not JSON"},
           {R"({"x": )" + std::string(40, '[') + std::string(40, ']') + R"(, "text": "a"})",
            "nested deeper than 32 levels"},
           {"", "not JSON"}}) {
    EXPECT_THAT(fault_of(lines, line), testing::HasSubstr(words)) << line;
  }
}

}  // namespace
}  // namespace trireme
