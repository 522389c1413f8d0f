#include "io/tokens/added_token_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const fs::path kGoldenFolder = fs::path(TRIREME_SOURCE_DIR) / "tests/io/tokens/golden";

// A folder with the golden SentencePiece model of 420 pieces, and files beside it.
class AddedTokenFolder : public testing::Test {
 protected:
  AddedTokenFolder() { start_anew(); }
  void start_anew() {
    fs::remove_all(folder());
    fs::create_directory(folder());
    fs::copy(kGoldenFolder / "sentencepiece.model", folder() / "tokenizer.model");
  }
  fs::path folder() const { return parent_.path() / "model"; }
  void put(const std::string& name, const json& value) {
    write_file_durably(folder() / name, value.dump());
  }
  std::unique_ptr<BpeTokenizer> open() const { return open_tokenizer_files(folder()); }
  // Returns why added_tokens.json is refused.
  std::string refusal(const json& added) {
    start_anew();
    put("added_tokens.json", added);
    return message_of<DataError>([&] { (void)open(); });
  }
  std::string refusal_of_decoder(const json& decoder) {
    start_anew();
    put("tokenizer_config.json", {{"added_tokens_decoder", decoder}});
    return message_of<DataError>([&] { (void)open(); });
  }

  TempFolder parent_;
};

std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<std::int32_t> around_text(const BpeTokenizer& tokenizer) {
  std::vector<std::int32_t> ids = tokenizer.surroundings().before();
  const std::vector<std::int32_t>& after = tokenizer.surroundings().after();
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

// The file is from make_added_golden.py, which asks transformers.
TEST_F(AddedTokenFolder, EncodesAsTransformersDoes) {
  const json cases = json::parse(read_file(kGoldenFolder / "added.json"));
  ASSERT_EQ(cases.size(), 7U);
  for (const json& one : cases) {
    start_anew();
    for (const auto& [name, value] : one["files"].items()) {
      put(name, value);
    }
    const auto tokenizer = open();
    EXPECT_EQ(tokenizer->vocab(), one["vocab"]) << one["name"];
    EXPECT_EQ(tokenizer->end_of_document(), one["end"]) << one["name"];
    EXPECT_EQ(json(around_text(*tokenizer)), one["around"]) << one["name"];
    for (const json& text : one["texts"]) {
      EXPECT_EQ(json(ids_of(*tokenizer, text["text"])), text["ids"]) << one["name"] << text;
    }
    store_tokenizer(folder(), "", parent_.path() / "dataset");
    EXPECT_EQ(open_tokenizer(parent_.path() / "dataset/tokenizer")->digest(), tokenizer->digest());
  }
}

TEST_F(AddedTokenFolder, TakesFromTheFilesWhichTokensAreSpecial) {
  put("added_tokens.json", {{"<a>", 420U}, {"<b>", 421U}, {"<c>", 422U}});
  put("special_tokens_map.json", {{"additional_special_tokens", {{{"content", "<a>"}}}}});
  put("tokenizer_config.json", {{"pad_token", "<c>"}});
  const auto named = open();
  EXPECT_TRUE(named->is_special(420));
  EXPECT_FALSE(named->is_special(421));
  EXPECT_TRUE(named->is_special(422));
  const json decoder = {{"420", {{"content", "<x>"}, {"special", true}}},
                        {"421", {{"content", "<y>"}, {"special", false}}}};
  put("tokenizer_config.json", {{"added_tokens_decoder", decoder}});
  const auto decoded = open();  // which added_tokens.json does not change
  EXPECT_EQ(decoded->vocab(), 422);
  EXPECT_EQ(decoded->token(420), "<x>");
  EXPECT_TRUE(decoded->is_special(420));
  EXPECT_FALSE(decoded->is_special(421));
}

TEST_F(AddedTokenFolder, ChangesNoDigestWithoutAddedTokens) {
  const std::string digest = open()->digest();
  // What version 0.1.0 gave.
  EXPECT_EQ(digest, open_tokenizer_files(kGoldenFolder / "sentencepiece.model")->digest());
  put("tokenizer_config.json",
      {{"legacy", true}, {"add_prefix_space", true}, {"eos_token", "<s>"}});
  put("special_tokens_map.json", {{"pad_token", "<unk>"}});
  EXPECT_EQ(open()->digest(), digest);
  put("tokenizer_config.json", {{"legacy", nullptr}});
  EXPECT_EQ(open()->digest(), digest);
  const json unknown = {{"content", "<unk>"}, {"special", true}, {"normalized", true}};
  put("tokenizer_config.json", {{"added_tokens_decoder", {{"0", unknown}}}});
  EXPECT_EQ(open()->digest(), digest);
  write_file_durably(folder() / "special_tokens_map.json", "damaged");
  put("tokenizer_config.json", json::object());
  EXPECT_EQ(open()->digest(), digest);
}

TEST_F(AddedTokenFolder, RefusesIdsThatDoNotContinueTheVocabulary) {
  EXPECT_THAT(refusal({{"<a>", 420U}, {"<b>", 422U}}),
              AllOf(HasSubstr((folder() / "added_tokens.json").string() + ": "),
                    HasSubstr("'<b>' has the id 422"), HasSubstr("is 421")));
  EXPECT_THAT(refusal({{"<a>", 7U}}), HasSubstr("'<a>' has the id 7, which is '"));
  EXPECT_THAT(refusal({{"<s>", 420U}}), HasSubstr("the model's vocabulary gives it 1"));
  EXPECT_THAT(refusal({{"<a>", 420U}, {"<b>", 420U}}), HasSubstr("have the same id 420"));
  EXPECT_THAT(refusal({{"", 420U}}), HasSubstr("no text"));
  EXPECT_THAT(refusal({{"<a>", -1}}), HasSubstr("'<a>' has the id -1"));
  EXPECT_THAT(refusal({{"<a>", "420"}}), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal(json::array({1U})), HasSubstr("not an object of tokens and their ids"));
}

TEST_F(AddedTokenFolder, RefusesADecoderThatItDoesNotUnderstand) {
  const json plain = {{"content", "<a>"}};
  EXPECT_THAT(refusal_of_decoder({{"420", plain}, {"421", plain}}), HasSubstr("occurs twice"));
  EXPECT_THAT(refusal_of_decoder({{"420", plain}, {"0420", {{"content", "<b>"}}}}),
              HasSubstr("twice"));
  EXPECT_THAT(refusal_of_decoder({{"4x", plain}}), HasSubstr("'4x'"));
  EXPECT_THAT(refusal_of_decoder({{"420", {{"content", "<a>"}, {"single_word", true}}}}),
              AllOf(HasSubstr((folder() / "tokenizer_config.json").string() + ": "),
                    HasSubstr("'<a>' has the option single_word")));
  EXPECT_THAT(refusal_of_decoder({{"420", {{"content", "<a>"}, {"color", 3}}}}),
              HasSubstr("'color'"));
  EXPECT_THAT(refusal_of_decoder({{"420", "<a>"}}), HasSubstr("an added token"));
}

TEST_F(AddedTokenFolder, RefusesBlanksAboutWhichTokenizersDiffer) {
  for (const json& value : {json(false), json()}) {
    put("tokenizer_config.json", {{"add_prefix_space", value}});
    EXPECT_THAT(message_of<DataError>([&] { (void)open(); }),
                AllOf(HasSubstr((folder() / "tokenizer_config.json").string() + ": "),
                      HasSubstr("add_prefix_space is " + value.dump())));
  }
}

TEST_F(AddedTokenFolder, DecodesWithoutTheBlankInFront) {
  put("tokenizer_config.json", {{"legacy", false}});
  EXPECT_EQ(open()->decode(ids_of(*open(), "a b"), false), "a b");
  EXPECT_EQ(open()->decode(ids_of(*open(), " a b"), false), "a b");  // as from a tokenizer.json
  put("tokenizer_config.json", {{"legacy", false}, {"add_prefix_space", false}});
  EXPECT_EQ(open()->decode(ids_of(*open(), "a b"), false), "a b");
  EXPECT_EQ(open()->decode(ids_of(*open(), " a b"), false), " a b");
}

TEST_F(AddedTokenFolder, RefusesFilesThatAreNone) {
  for (const char* name : {"tokenizer_config.json", "added_tokens.json"}) {
    start_anew();
    const fs::path fifo = folder() / name;
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const std::string message = message_of<DataError>([&] { (void)open(); });
    EXPECT_THAT(message, HasSubstr(fifo.string()));
    EXPECT_EQ(message.find(fifo.string()), message.rfind(fifo.string())) << message;
  }
}

}  // namespace
}  // namespace trireme
