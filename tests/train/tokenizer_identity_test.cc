#include "src/train/start/tokenizer_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TokenizerIdentity bytes() {
  const auto own = make_tokenizer("bytes");
  return {own->name(), own->vocab(), own->digest()};
}

TEST(TokenizerIdentity, GoesThroughACheckpoint) {
  nlohmann::json extra = {{"counters", 1}};
  put_tokenizer({"gpt2", 50257, "0123456789abcdef"}, extra);
  const TokenizerIdentity back = tokenizer_from_extra(nlohmann::json::parse(extra.dump()));
  EXPECT_EQ(back.name, "gpt2");
  EXPECT_EQ(back.vocab, 50257);
  EXPECT_EQ(back.digest, "0123456789abcdef");
  EXPECT_EQ(extra.at("counters"), 1);
  EXPECT_EQ(describe(back), "'gpt2' (50257 ids, 0123456789ab)");
}

TEST(TokenizerIdentity, OfOlderCheckpointsIsANameOrBytes) {
  const TokenizerIdentity named = tokenizer_from_extra({{"tokenizer", "gpt2"}});
  EXPECT_EQ(named.name, "gpt2");
  EXPECT_EQ(named.vocab, 0);
  EXPECT_EQ(describe(named), "'gpt2'");
  EXPECT_EQ(tokenizer_from_extra(nlohmann::json::object()).name, "bytes");
  EXPECT_THROW((void)tokenizer_from_extra({{"tokenizer", 3}}), DataError);
  EXPECT_THROW((void)tokenizer_from_extra({{"tokenizer_digest", "ab"}, {"tokenizer_vocab", -1}}),
               DataError);
}

TEST(TokenizerIdentity, ComparesDigestsWhereBothAreKnown) {
  EXPECT_TRUE(same_tokenizer({"a", 5, "x"}, {"b", 5, "x"})) << "the same under another name";
  EXPECT_FALSE(same_tokenizer({"a", 5, "x"}, {"a", 5, "y"}));
  EXPECT_TRUE(same_tokenizer({"a", 5, ""}, {"a", 5, "y"}));
  EXPECT_FALSE(same_tokenizer({"a", 5, ""}, {"b", 5, "y"}));
}

TEST(TokenizerFor, IsTheProgramsOwnOrRefused) {
  EXPECT_EQ(tokenizer_for(bytes(), 257, false, "do")->name(), "bytes");
  EXPECT_THAT(message_of<ConfigError>([] {
                tokenizer_for({"gpt2", 50257, "ab"}, 50257, false, "do this");
              }),
              AllOf(HasSubstr("tokens of 'gpt2' (50257 ids, ab), a tokenizer that this program "
                              "does not have"),
                    HasSubstr(": do this")));
  EXPECT_EQ(message_of<ConfigError>([] {
              tokenizer_for({"imported", 0, ""}, 257, false, "do this");
            }),
            "the model was imported without the files of its tokenizer: do this");
  EXPECT_THAT(message_of<ConfigError>([] {
                tokenizer_for({"bytes", 257, "ab"}, 257, false, "do");
              }),
              HasSubstr("differs from this program's tokenizer of the same name"));
}

TEST(TokenizerFor, IdsNeedNoTokenizer) {
  const auto ids = tokenizer_for({"gpt2", 100, "ab"}, 128, true, "");
  EXPECT_EQ(ids->vocab(), 100) << "the model may have more rows than the tokenizer has ids";
  EXPECT_EQ(tokenizer_for({"gpt2", 0, ""}, 128, true, "")->vocab(), 128);
  EXPECT_EQ(tokenizer_for({"gpt2", 128, "ab"}, 128, true, "")->vocab(), 128);
  std::vector<std::int32_t> read = {7};
  ids->encode(" 0, 99\t5\n12 ", read);
  EXPECT_THAT(read, ElementsAre(7, 0, 99, 5, 12)) << "they are appended";
  EXPECT_EQ(ids->decode(read), " 7 0 99 5 12");
  EXPECT_EQ(ids->end_of_document(), -1);
}

TEST(TokenizerFor, RefusesWhatIsNoId) {
  const auto ids = tokenizer_for({"gpt2", 100, "ab"}, 128, true, "");
  for (const char* word : {"100", "-1", "1.5", "x", "1x", "99999999999999"}) {
    std::vector<std::int32_t> read;
    EXPECT_THAT(
        message_of<ConfigError>([&] { ids->encode(std::string("3 ") + word, read); }),
        HasSubstr(fmt::format("'{}' is not a token id: ids are numbers from 0 to 99", word)));
  }
  for (const char* nothing : {"", " ", ",\n"}) {
    std::vector<std::int32_t> read;
    EXPECT_THAT(message_of<ConfigError>([&] { ids->encode(nothing, read); }),
                HasSubstr("at least one id"));
  }
}

}  // namespace
}  // namespace trireme
