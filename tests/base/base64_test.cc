#include "src/base/base64.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// RFC 4648, section 10.
TEST(Base64, HasTheValuesOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, ReadsBothAlphabetsAndAllBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) {
    all += static_cast<char>(i);
  }
  EXPECT_EQ(from_base64(to_base64(all)), all);
  EXPECT_EQ(from_base64("-_-_"), from_base64("+/+/"));
}

TEST(Base64, RefusesOtherSpellings) {
  for (const char* const text : {"Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm9v\n",
                                 "Zm 9", "Zm9*", "+_==", "=", "Zg==\n\n\n\n",
                                 "\xc3\xa4"
                                 "aa"}) {
    EXPECT_THROW((void)from_base64(text), DataError) << text;
  }
}

}  // namespace
}  // namespace trireme
