#include "src/base/sealed_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

TEST(SealedJson, ComesBack) {
  const std::string text = seal_json({{"version", 2}, {"text", "a\"b\n"}});
  EXPECT_EQ(unseal_json(text, 2).at("text"), "a\"b\n");
  EXPECT_EQ(unseal_json(seal_body("{\"version\": 1"), 2).at("version"), 1);
}

TEST(SealedJson, AnyChangeBreaksTheSeal) {
  const std::string text = seal_json({{"version", 1}, {"n", 5}});
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(unseal_json(damaged, 1), DataError) << at;
    EXPECT_THROW(unseal_json(text.substr(0, at), 1), DataError) << at;
  }
  EXPECT_THROW(unseal_json(text + "\n", 1), DataError);
}

TEST(SealedJson, ANewerVersionIsNamedWhateverItsSeal) {
  for (const std::string& text :
       {seal_json({{"version", 7}}), std::string(R"({"version": 7, "new": true})")}) {
    EXPECT_THAT(message_of<DataError>([&] { unseal_json(text, 1); }),
                testing::HasSubstr("version 7 is newer than 1"));
  }
}

TEST(SealedJson, AnIncompleteFileIsToldFromADamagedOne) {
  const auto refusal = [](const std::string& text) {
    return message_of<DataError>([&] { unseal_json(text, 1); });
  };
  std::string text = seal_json({{"version", 1}, {"n", 5}});
  EXPECT_THAT(refusal(""), testing::HasSubstr("the file is empty"));
  for (const std::size_t at : {std::size_t{1}, text.size() / 2, text.size() - 1}) {
    EXPECT_THAT(refusal(text.substr(0, at)), testing::HasSubstr("cut short")) << at;
  }
  text[text.find('5')] = '6';
  EXPECT_THAT(refusal(text), testing::HasSubstr("damaged or edited"));
}

TEST(PlainField, IsReadWithoutTheRest) {
  const std::string text =
      R"({"a": {"version": 1, "b": [{"version": 2}]}, "version": 7, "list": [1], "c": })";
  EXPECT_EQ(plain_field(text, "version").value(), 7);
  for (const char* name : {"a", "list", "b", "c", "none"}) {
    EXPECT_FALSE(plain_field(text, name).has_value()) << name;
  }
  for (const char* other : {"", "7", "[\"version\", 7]", "{\"version\": [7]}", "\xFF"}) {
    EXPECT_FALSE(plain_field(other, "version").has_value()) << other;
  }
}

}  // namespace
}  // namespace trireme
