#include "io/tokens/vocabulary_files.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

json in_golden(const std::string& name) {
  return json::parse(
      read_file(fs::path(TRIREME_SOURCE_DIR) / "tests/io/tokens/golden" / (name + ".json")));
}

// A folder with the vocabulary of the golden GPT-2 tokenizer, of 330 tokens, as vocab.json and
// merges.txt, and files beside them.
class VocabularyFolder : public testing::Test {
 protected:
  VocabularyFolder() { start_anew(); }
  void start_anew() {
    fs::remove_all(folder());
    fs::create_directory(folder());
    put("vocab.json", model_["vocab"]);
    std::string merges = "#version: 0.2\n";
    for (const json& merge : model_["merges"]) {
      merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    }
    write_file_durably(folder() / "merges.txt", merges);
  }
  fs::path folder() const { return parent_.path() / "model"; }
  void put(const std::string& name, const json& value) {
    write_file_durably(folder() / name, value.dump());
  }
  json encode(const Tokenizer& tokenizer, const std::string& text) const {
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, ids);
    return ids;
  }
  std::string refusal() {
    return message_of<DataError>([&] { (void)open_tokenizer_files(folder()); });
  }

  TempFolder parent_;
  const json model_ = in_golden("gpt2")["tokenizer"]["model"];
};

TEST_F(VocabularyFolder, IsReadAsItsTokenizerJson) {
  json vocab = model_["vocab"];
  vocab["model"] = 5000U;  // GPT-2 has such a token
  put("vocab.json", vocab);
  const auto tokenizer = open_tokenizer_files(folder());
  const json cases = in_golden("gpt2")["cases"];
  for (const json& one : cases) {
    const std::string text = one["text"];
    if (text.find('<') == std::string::npos) {  // no added tokens are in these files
      EXPECT_EQ(encode(*tokenizer, text), one["ids"]);
    }
  }
}

TEST_F(VocabularyFolder, NeedsItsMerges) {
  fs::remove(folder() / "merges.txt");
  EXPECT_THROW((void)open_tokenizer_files(folder()), NotFound);
}

// The file is from make_added_golden.py, which asks transformers.
TEST_F(VocabularyFolder, EncodesAsTransformersDoesWithTheFilesBesideIt) {
  const json cases = in_golden("vocabulary");
  ASSERT_EQ(cases.size(), 6U);
  for (const json& one : cases) {
    start_anew();
    for (const auto& [name, value] : one["files"].items()) {
      put(name, value);
    }
    const auto tokenizer = open_tokenizer_files(folder());
    EXPECT_EQ(tokenizer->vocab(), one["vocab"]) << one["name"];
    EXPECT_EQ(tokenizer->end_of_document(), one["end"]) << one["name"];
    EXPECT_EQ(json(tokenizer->surroundings().before()), one["around"]) << one["name"];
    for (const json& text : one["texts"]) {
      EXPECT_EQ(encode(*tokenizer, text["text"]), text["ids"]) << one["name"] << text;
    }
    const fs::path dataset = parent_.path() / "dataset";
    store_tokenizer(folder(), "", dataset);
    EXPECT_EQ(open_tokenizer(dataset / "tokenizer")->digest(), tokenizer->digest());
  }
}

TEST_F(VocabularyFolder, RefusesWhatItCannotFollow) {
  put("tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_THAT(refusal(), HasSubstr("\"RobertaTokenizer\": beside a merges.txt, GPT2Tokenizer"));
  put("tokenizer_config.json", {{"add_prefix_space", true}, {"tokenizer_class", "Qwen2Tokenizer"}});
  EXPECT_THAT(refusal(), HasSubstr("Qwen2Tokenizer has no such option"));
  put("tokenizer_config.json", {{"split_special_tokens", true}});
  EXPECT_THAT(refusal(), HasSubstr("split_special_tokens"));
  put("tokenizer_config.json", {{"add_prefix_space", true}});
  EXPECT_THAT(refusal(), HasSubstr("add_prefix_space: GPT2Tokenizer puts a blank"));
  put("tokenizer_config.json", {{"add_prefix_space", false}});
  put("added_tokens.json", {{"<tool>", 400U}});
  EXPECT_THAT(refusal(), HasSubstr("the next id after the 330"));
}

TEST_F(VocabularyFolder, IsThatOfTheModelIfItNamesNoClass) {
  put("config.json", {{"model_type", "qwen2"}});
  const json as_qwen2 = encode(*open_tokenizer_files(folder()), "12 e\u0301");
  put("tokenizer_config.json", {{"tokenizer_class", "Qwen2Tokenizer"}});
  EXPECT_EQ(encode(*open_tokenizer_files(folder()), "12 e\u0301"), as_qwen2);
  put("tokenizer_config.json", {{"tokenizer_class", "GPT2Tokenizer"}});
  EXPECT_NE(encode(*open_tokenizer_files(folder()), "12 e\u0301"), as_qwen2);
}

TEST_F(VocabularyFolder, RefusesVocabulariesWithoutIds) {
  put("vocab.json", json::array({"a", "b"}));
  EXPECT_THAT(refusal(), HasSubstr("not an object of tokens and their ids"));
  for (const json& id : {json("0"), json(-1), json(0.5), json(nullptr)}) {
    put("vocab.json", {{"a", 0U}, {"b", id}});
    put("added_tokens.json", {{"b", 1U}});
    EXPECT_THAT(refusal(), HasSubstr("'b' has the id " + id.dump() + ", not a whole number"));
  }
}

}  // namespace
}  // namespace trireme
