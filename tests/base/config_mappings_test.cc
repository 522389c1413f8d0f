#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/config_binder.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

using Mixed = std::vector<std::vector<ConfigEntry>>;

// Binds data.mixed and data.words, and returns what is wrong, or "".
std::string bind_mixed(const std::vector<std::string>& arguments, Mixed& mixed) {
  ConfigBinder b;
  b.add_arguments(arguments);
  mixed.clear();
  b.mappings("data.mixed", mixed, "path", "folders");
  std::vector<std::string> words;
  b.texts("data.words", words, "words");
  try {
    b.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigMappings, AreBoundToTheEntriesOfEach) {
  Mixed mixed;
  EXPECT_EQ(bind_mixed({"data.mixed=[{path: a, weight: 2}, {path: b}]"}, mixed), "");
  ASSERT_EQ(mixed.size(), 2U);
  ASSERT_EQ(mixed[0].size(), 2U);
  EXPECT_EQ(mixed[0][1].key, "weight");
  EXPECT_EQ(mixed[0][1].value.items[0], "2");
}

TEST(ConfigMappings, TextsStandForMappings) {
  Mixed mixed;
  EXPECT_EQ(bind_mixed({"data.mixed=a b"}, mixed), "");
  EXPECT_EQ(mixed.at(0).at(0).value.items[0], "a b");
  EXPECT_EQ(bind_mixed({"data.mixed=[a, b]"}, mixed), "");
  EXPECT_EQ(mixed.at(1).at(0).key, "path");
  EXPECT_EQ(bind_mixed({"data.mixed=[a, b]", "data.mixed="}, mixed), "");
  EXPECT_TRUE(mixed.empty());
}

TEST(ConfigMappings, OtherValuesAreRefused) {
  Mixed mixed;
  for (const std::string wrong : {"[]", "{}"}) {
    EXPECT_THAT(bind_mixed({"data.mixed=" + wrong}, mixed),
                HasSubstr("data.mixed: " + wrong + " is not allowed; allowed: path or [{path"));
    EXPECT_TRUE(mixed.empty());
  }
  EXPECT_THAT(bind_mixed({"data.words=[{a: 1}]"}, mixed),
              HasSubstr("data.words: [{a: 1}] is not allowed"));
}

}  // namespace
}  // namespace trireme
