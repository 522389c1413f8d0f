#include "src/keys/sealed_text.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::HasSubstr;

constexpr const char* kFileName = "metrics.jsonl";

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  return lines;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line;
  }
  return text;
}

class SealedText : public testing::Test {
 protected:
  // Appends a section to a file, as one process does.
  void append(std::string& file, const std::vector<std::string>& records, bool ends = true,
              const std::string& name = kFileName) const {
    SectionSealer sealer(key_, name);
    const std::vector<std::string> lines = split_lines(file);
    const std::string last = lines.empty() ? "" : lines.back().substr(0, lines.back().size() - 1);
    file += sealer.begin(last);
    for (const std::string& record : records) {
      file += sealer.seal(record);
    }
    file += ends ? sealer.end() : "";
  }
  // Three sections: lines 1 to 5, 6 to 8 (without an end) and 9 to 11.
  std::string three_sections() const {
    std::string file;
    append(file, {"a\n", "b\n", "c\n"});
    append(file, {"d\n", "e\n"}, false);
    append(file, {"f\n"});
    return file;
  }
  OpenedText open(const std::string& file, const std::string& name = kFileName) const {
    return open_sealed_text(
        file, name, [this](const std::string&) -> const DataKey& { return *key_; }, "it");
  }
  std::string refusal(const std::string& file, const std::string& name = kFileName) const {
    return message_of<DataError>([&] { (void)open(file, name); });
  }

  const std::shared_ptr<const DataKey> key_ = std::make_shared<const DataKey>(DataKey::generate());
};

TEST_F(SealedText, HoldsWhatSeveralProcessesAppended) {
  const std::string file = three_sections();
  EXPECT_EQ(split_lines(file).size(), 11U);
  const OpenedText opened = open(file);
  EXPECT_EQ(opened.text, "a\nb\nc\nd\ne\nf\n");
  EXPECT_EQ(opened.sections, 3);
  EXPECT_EQ(opened.unfinished, 1);
  EXPECT_EQ(opened.previous, std::string(64, '0'));
  EXPECT_EQ(open("").text, "");
}

TEST_F(SealedText, LongTextsTakeSeveralRecords) {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{5} << 19); ++i) {
    text += std::to_string(i) + std::string(1, '\0');
  }
  std::string file;
  append(file, {text, "", "end"});
  EXPECT_EQ(split_lines(file).size(), 6U) << "head, 3 records, 1 record, end";
  EXPECT_EQ(open(file).text, text + "end");
}

TEST_F(SealedText, TwoSectionsWithTheSameTextHaveNothingInCommon) {
  std::string one;
  std::string two;
  append(one, {"the same"});
  append(two, {"the same"});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NE(split_lines(one)[i], split_lines(two)[i]);
  }
}

// A crash may leave any part of the last line.
TEST_F(SealedText, IsReadUpToAnyCut) {
  const std::string whole = three_sections();
  const std::string plain = open(whole).text;
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const OpenedText opened = open(whole.substr(0, bytes));
    ASSERT_TRUE(plain.starts_with(opened.text)) << bytes;
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(bytes), '\n');
    const std::int64_t unfinished = lines == 0 || lines == 5 ? 0 : lines < 9 ? 1 : 2;
    ASSERT_EQ(opened.unfinished, unfinished) << bytes;
  }
}

TEST_F(SealedText, EveryChangedByteIsFound) {
  const std::string whole = three_sections();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned flip : {1U, 32U, 128U}) {
      std::string file = whole;
      file[i] = static_cast<char>(static_cast<unsigned char>(file[i]) ^ flip);
      if (i + 1 == whole.size()) {
        EXPECT_EQ(open(file).unfinished, 2) << "the last line is torn";
      } else {
        EXPECT_THAT(refusal(file), HasSubstr("it, line ")) << i;
      }
    }
  }
}

TEST_F(SealedText, EveryRemovedLineIsFoundButTheLastOnes) {
  const std::vector<std::string> lines = split_lines(three_sections());
  const std::vector<std::string> answers = {"there is no section",
                                            "1 record before this",
                                            "1 record before this",
                                            "1 record before this",
                                            "does not follow the line",
                                            "the end of its section",
                                            "1 record before this",
                                            "does not follow the line",
                                            "",
                                            "1 record before this",
                                            ""};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> left = lines;
    left.erase(left.begin() + static_cast<long>(i));
    if (answers[i].empty() && i == 10) {
      EXPECT_EQ(open(join(left)).unfinished, 2);
    } else if (answers[i].empty()) {
      EXPECT_THAT(refusal(join(left)), HasSubstr("was changed, or comes from another")) << i;
    } else {
      EXPECT_THAT(refusal(join(left)), HasSubstr(answers[i])) << i;
    }
  }
}

TEST_F(SealedText, LinesOutOfPlaceAreFound) {
  const std::vector<std::string> lines = split_lines(three_sections());
  std::vector<std::string> swapped = lines;
  std::swap(swapped[1], swapped[2]);
  EXPECT_THAT(refusal(join(swapped)), HasSubstr("it, line 2: 1 record before this"));
  std::vector<std::string> repeated = lines;
  repeated.insert(repeated.begin() + 3, lines[1]);
  EXPECT_THAT(refusal(join(repeated)), HasSubstr("it, line 4: this record was in the file before"));
  std::vector<std::string> from_another = lines;
  from_another[9] = lines[1];
  EXPECT_THAT(refusal(join(from_another)), HasSubstr("it, line 10: this record was changed"));
  std::vector<std::string> after_the_end = lines;
  after_the_end.push_back(lines[1]);
  EXPECT_THAT(refusal(join(after_the_end)),
              HasSubstr("it, line 12: this record follows the end of its section"));
}

TEST_F(SealedText, SectionsOutOfPlaceAreFound) {
  const std::vector<std::string> lines = split_lines(three_sections());
  const auto part = [&](long begin, long end) {
    return std::vector<std::string>(lines.begin() + begin, lines.begin() + end);
  };
  const std::vector<std::string> first = part(0, 5);
  const std::vector<std::string> second = part(5, 8);
  const std::vector<std::string> third = part(8, 11);
  EXPECT_THAT(refusal(join(first) + join(third)),
              HasSubstr("line 6: this section does not follow"));
  EXPECT_THAT(refusal(join(first) + join(third) + join(second)), HasSubstr("line 6"));
  EXPECT_THAT(refusal(join(first) + join(first)), HasSubstr("line 6: this section does not"));
  // Its reader knows whether the file continues another one.
  EXPECT_NE(open(join(second) + join(third)).previous, std::string(64, '0'));
}

TEST_F(SealedText, OtherFilesAndKeysDoNotFit) {
  const std::string file = three_sections();
  EXPECT_THAT(refusal(file, "logs/rank-00000.jsonl"),
              HasSubstr("line 1: the beginning of a section was changed, or comes from another"));
  std::string other;
  append(other, {"x\n"}, true, "logs/rank-00000.jsonl");
  std::vector<std::string> lines = split_lines(file);
  lines[1] = split_lines(other)[1];
  EXPECT_THAT(refusal(join(lines)), HasSubstr("line 2: this record was changed, or comes from"));
  const DataKey stranger = DataKey::generate();
  EXPECT_THAT(message_of<DataError>([&] {
                (void)open_sealed_text(
                    file, kFileName, [&](const std::string&) -> const DataKey& { return stranger; },
                    "it");
              }),
              HasSubstr("line 1: the beginning of a section was changed"));
}

TEST_F(SealedText, TwoWritersAtOnceAreFound) {
  SectionSealer one(key_, kFileName);
  SectionSealer two(key_, kFileName);
  std::string file = one.begin("");
  file += one.seal("a\n");
  const std::vector<std::string> lines = split_lines(file);
  file += two.begin(lines.back().substr(0, lines.back().size() - 1));
  file += two.seal("b\n");
  file += one.seal("c\n");
  EXPECT_THAT(refusal(file), HasSubstr("line 5: this record belongs to the section before: two"));
}

TEST_F(SealedText, OtherTextIsFound) {
  const std::string file = three_sections();
  EXPECT_THAT(refusal(file + "{\"step\": 1}\n"), HasSubstr("line 12: is neither an encrypted"));
  EXPECT_THAT(refusal(file + "\n"), HasSubstr("line 12: is neither"));
  EXPECT_THAT(refusal(file + std::string(std::size_t{3} << 20, 'A') + "\n"),
              HasSubstr("line 12: is neither"));
  std::string newer = file;
  newer[std::string("TRIREME-SEALED-").size()] = '2';
  EXPECT_THAT(refusal(newer), HasSubstr("line 1: begins a section of version '2'"));
  EXPECT_THAT(refusal("TRIREME-SEALED-1 a b c d\n"), HasSubstr("does not have its form"));
  EXPECT_THAT(refusal("TRIREME-SEALED-\n"), HasSubstr("version ''"));
}

}  // namespace
}  // namespace trireme
