#include "src/base/shortened.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Shortened, LeavesUsualMessagesAlone) {
  for (const std::string& text : {std::string(), std::string("run.yaml:3: train.steps: 'x'\n  y"),
                                  "/" + std::string(999, 'a')}) {
    EXPECT_EQ(shortened(text), text);
  }
}

TEST(Shortened, KeepsWhereAndWhatNextOfALongValue) {
  const std::string said =
      shortened("run.yaml:3: train.steps: '" + std::string(100'000, 'x') + "' is no number");
  EXPECT_THAT(said, StartsWith("run.yaml:3: train.steps: 'xxx"));
  EXPECT_THAT(said, HasSubstr("x...(99402 bytes)...x"));
  EXPECT_THAT(said, EndsWith("xxx' is no number"));
  EXPECT_LT(said.size(), 700U);
}

TEST(Shortened, CutsManyWordsToo) {
  std::string words;
  for (int i = 0; i < 50'000; ++i) {
    words += "a ";
  }
  const std::string said = shortened("train.steps: " + words + "is no number");
  EXPECT_THAT(said, StartsWith("train.steps: a a"));
  EXPECT_THAT(said, EndsWith("a is no number"));
  EXPECT_LT(said.size(), 8500U);
}

TEST(Shortened, CutsBetweenCharacters) {
  for (std::size_t lead = 0; lead < 3; ++lead) {
    std::string text(lead, 'x');
    for (int i = 0; i < 1000; ++i) {
      text += "\u20ac";
    }
    const std::string said = shortened(text);
    const std::size_t first = said.find("...(");
    const std::size_t last = said.find(")...") + 4;
    EXPECT_EQ((first - lead) % 3, 0U);
    EXPECT_EQ((said.size() - last) % 3, 0U);
  }
  EXPECT_LT(shortened(std::string(2000, '\x80')).size(), 700U);  // not UTF-8
}

}  // namespace
}  // namespace trireme
