#include "io/tokens/bpe_tokenizer.h"

#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/tokens/decode_stream.h"
#include "io/tokens/tokenizer_files.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kGolden =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/io/tokens/golden";

json golden(const std::string& kind) { return json::parse(read_file(kGolden / (kind + ".json"))); }

class GoldenTokenizer : public testing::TestWithParam<std::string> {};

// The files are from make_golden.py, which asks Hugging Face's tokenizers.
TEST_P(GoldenTokenizer, EncodesAndDecodesAsHuggingFaceDoes) {
  const json expected = golden(GetParam());
  const BpeTokenizer tokenizer(expected["tokenizer"], "");
  ASSERT_GT(expected["cases"].size(), 35U);
  for (const json& one : expected["cases"]) {
    const std::string text = one["text"];
    for (int again = 0; again < 2; ++again) {  // the second time from the cache
      std::vector<std::int32_t> ids;
      tokenizer.encode(text, ids);
      EXPECT_EQ(json(ids), one["ids"]) << json(text);
    }
    const std::vector<std::int32_t> ids = one["ids"];
    const std::string decoded = one.value("decoded", text);
    EXPECT_EQ(tokenizer.decode(ids), decoded) << json(text);
    EXPECT_EQ(tokenizer.decode(ids, true), one.value("decoded_special", decoded)) << json(text);
    if (one != expected["cases"][0]) {
      continue;  // the file has ids with special tokens for the first texts only
    }
    std::vector<std::int32_t> special = tokenizer.surroundings().before();
    special.insert(special.end(), ids.begin(), ids.end());
    const auto& after = tokenizer.surroundings().after();
    special.insert(special.end(), after.begin(), after.end());
    EXPECT_EQ(json(special), one.value("with_special", one["ids"])) << json(text);
  }
}

TEST_P(GoldenTokenizer, StreamsTheTextOfAllIds) {
  const json expected = golden(GetParam());
  const BpeTokenizer tokenizer(expected["tokenizer"], "");
  for (const json& one : expected["cases"]) {
    const std::vector<std::int32_t> ids = one["ids"];
    DecodeStream stream(tokenizer, {});
    std::string text;
    for (const std::int32_t id : ids) {
      text += stream.add(id);
    }
    EXPECT_EQ(text + stream.rest(), tokenizer.decode(ids));
  }
}

// No piece of a stream is changed by the ids after it, whatever a model draws.
TEST_P(GoldenTokenizer, StreamsOnlyTextThatLaterIdsCannotChange) {
  const BpeTokenizer tokenizer(golden(GetParam())["tokenizer"], "");
  std::vector<std::int32_t> all;
  std::vector<std::int32_t> bytes;  // byte tokens, or those of parts of characters
  for (std::int32_t id = 0; id < tokenizer.vocab(); ++id) {
    if (id < std::ssize(tokenizer.model().tokens()) &&
        !tokenizer.model().tokens()[static_cast<std::size_t>(id)]) {
      continue;
    }
    all.push_back(id);
    if (is_byte_token(tokenizer.token(id)) || tokenizer.decode(std::vector{id}) == "\uFFFD") {
      bytes.push_back(id);
    }
  }
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> ids;
    DecodeStream stream(tokenizer, {});
    std::string text;
    for (int i = 0; i < 12; ++i) {
      const auto& from = bytes.empty() || random() % 3 == 0 ? all : bytes;
      ids.push_back(from[random() % from.size()]);
      text += stream.add(ids.back());
      ASSERT_TRUE(tokenizer.decode(ids).starts_with(text)) << json(ids);
    }
    ASSERT_EQ(text + stream.rest(), tokenizer.decode(ids)) << json(ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer,
                         testing::Values("gpt2", "gpt2-prefix", "llama3", "qwen2", "tekken",
                                         "falcon", "llama2", "mistral", "words", "metaspace"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(BpeTokenizer, StreamsARunOfByteTokensWhenItHasEnded) {
  const BpeTokenizer tokenizer(golden("llama2")["tokenizer"], "");
  const auto id = [&](std::string_view token) { return *tokenizer.model().id_of(token); };
  DecodeStream stream(tokenizer, {id("m"), id("<0xC3>"), id("<0xA9>")});
  // An A that invalid bytes follow, in one run, has no text of its own.
  for (const char* byte : {"<0x41>", "<0xF5>", "<0x42>", "<0x43>"}) {
    EXPECT_EQ(stream.add(id(byte)), "");
  }
  EXPECT_EQ(stream.add(id("s")), "\uFFFD\uFFFD\uFFFD\uFFFDs");
  for (const char* byte : {"<0xF0>", "<0x9F>", "<0x98>"}) {
    EXPECT_EQ(stream.add(id(byte)), "");
  }
  EXPECT_EQ(stream.add(tokenizer.end_of_document()), "");  // has no text, and does not end the run
  EXPECT_EQ(stream.add(id("<0x80>")), "");
  EXPECT_EQ(stream.add(id("s")), "\U0001F600s");
  EXPECT_EQ(stream.add(id("<0x41>")), "");
  EXPECT_EQ(stream.rest(), "A");
}

TEST(BpeTokenizer, StreamsNothingBeforeTheEndWhereADecoderSearchesTheWholeText) {
  json definition = golden("llama2")["tokenizer"];
  definition["decoder"]["decoders"].push_back(
      {{"type", "Replace"}, {"pattern", {{"String", "ms"}}}, {"content", "s"}});
  const BpeTokenizer tokenizer(definition, "");
  DecodeStream stream(tokenizer, {});
  EXPECT_EQ(stream.add(*tokenizer.model().id_of("m")), "");
  EXPECT_EQ(stream.add(*tokenizer.model().id_of("s")), "");
  EXPECT_EQ(stream.rest(), "s");
}

TEST(BpeTokenizer, ReadsBrokenTextAsReplacementCharacters) {
  const BpeTokenizer tokenizer(golden("gpt2")["tokenizer"], "");
  const auto ids = [&](std::string_view text) {
    std::vector<std::int32_t> found;
    tokenizer.encode(text, found);
    return found;
  };
  // What Python's bytes.decode(errors="replace") makes of these.
  EXPECT_EQ(ids("a\xFF z"), ids("a\uFFFD z"));
  EXPECT_EQ(ids("\xF0\x9F\x98"), ids("\uFFFD"));
  EXPECT_EQ(ids("\xED\xA0\x80"), ids("\uFFFD\uFFFD\uFFFD"));
  EXPECT_EQ(ids("\xE2\x82"
                "A\xC0\x80"),
            ids("\uFFFDA\uFFFD\uFFFD"));
}

TEST(BpeTokenizer, MergesALongWordAsAShortOne) {
  const json definition = golden("llama2")["tokenizer"];
  json one_word = definition;  // a merge across a blank forbids to cut there
  one_word["model"]["vocab"]["e\u2581zz"] = 5000U;
  one_word["model"]["vocab"]["e\u2581z"] = 5001U;
  one_word["model"]["vocab"]["zz"] = 5002U;
  one_word["model"]["vocab"]["e\u2581"] = 5003U;
  one_word["model"]["merges"].push_back({"e\u2581", "zz"});
  one_word["model"]["vocab"]["z"] = 5004U;
  one_word["model"]["merges"].push_back({"z", "z"});
  const BpeTokenizer cut(definition, "");
  const BpeTokenizer whole(one_word, "");
  EXPECT_TRUE(cut.model().may_cut_at_marks());
  EXPECT_FALSE(whole.model().may_cut_at_marks());
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "The ship sails under oars along the coast. ";
  }
  std::vector<std::int32_t> a;
  std::vector<std::int32_t> b;
  cut.encode(text, a);
  whole.encode(text, b);
  EXPECT_EQ(a, b);
}

TEST(BpeTokenizer, DigestIsThatOfTheMeaning) {
  json definition = golden("gpt2")["tokenizer"];
  const std::string digest = BpeTokenizer(definition, "").digest();
  definition["version"] = "2.0";
  for (json& merge : definition["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  EXPECT_EQ(BpeTokenizer(definition, "").digest(), digest) << "merges in their older form";
  EXPECT_NE(BpeTokenizer(definition, "<s>").digest(), digest);
  std::swap(definition["model"]["merges"][0], definition["model"]["merges"][1]);
  EXPECT_NE(BpeTokenizer(definition, "").digest(), digest);
}

// Changes a good definition and returns why it is refused.
template <class Change>
std::string refusal(Change change) {
  json definition = golden("gpt2")["tokenizer"];
  change(definition);
  try {
    const BpeTokenizer tokenizer(definition, "");
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BpeTokenizer, RefusesWhatItDoesNotKnowByName) {
  EXPECT_THAT(refusal([](json& d) {
                d["normalizer"] = {{"type", "BertNormalizer"}};
              }),
              HasSubstr("normalizer 'BertNormalizer'"));
  EXPECT_THAT(refusal([](json& d) {
                d["pre_tokenizer"] = {{"type", "Whitespace"}};
              }),
              HasSubstr("pre-tokenizer 'Whitespace'"));
  EXPECT_THAT(refusal([](json& d) {
                d["decoder"] = {{"type", "CTC"}};
              }),
              HasSubstr("decoder 'CTC'"));
  EXPECT_THAT(refusal([](json& d) {
                d["post_processor"] = {{"type", "BertProcessing"}};
              }),
              HasSubstr("post-processor 'BertProcessing'"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["type"] = "Unigram"; }),
              HasSubstr("model 'Unigram'"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["new_option"] = 1; }), HasSubstr("'new_option'"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["dropout"] = 0.1; }), HasSubstr("dropout"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }),
              HasSubstr("end_of_word_suffix '</w>'"));
  EXPECT_THAT(refusal([](json& d) {
                d["truncation"] = {{"max_length", 5}};
              }),
              HasSubstr("'truncation'"));
  EXPECT_THAT(refusal([](json& d) { d["more"] = 1; }), HasSubstr("'more'"));
  EXPECT_THAT(refusal([](json& d) {
                d["pre_tokenizer"] = {{"type", "Split"},
                                      {"pattern", {{"Regex", "a+"}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}};
              }),
              HasSubstr("'a+'"));
  EXPECT_THAT(
      refusal([](json& d) {
        d["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", " "}};
      }),
      HasSubstr("' +'"));
}

TEST(BpeTokenizer, RefusesDamagedVocabularies) {
  EXPECT_THAT(refusal([](json& d) { d["model"]["vocab"]["zz"] = 3U; }),
              HasSubstr("both have the id 3"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["vocab"]["zz"] = -1; }), HasSubstr("'zz'"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["vocab"]["zz"] = 1U << 30; }), HasSubstr("'zz'"));
  EXPECT_THAT(refusal([](json& d) {
                d["model"]["merges"].push_back({"q", "qqq"});
              }),
              HasSubstr("'qqq' is not in the vocabulary"));
  EXPECT_THAT(refusal([](json& d) { d["model"]["merges"].push_back("abc"); }),
              HasSubstr("is neither"));
  EXPECT_THAT(refusal([](json& d) { d["added_tokens"][0]["id"] = 7U; }),
              HasSubstr("contradicts the vocabulary"));
  EXPECT_THAT(refusal([](json& d) {
                const std::size_t next = d["model"]["vocab"].size();
                d["added_tokens"].push_back({{"id", next}, {"content", "<a>"}});
                d["added_tokens"].push_back({{"id", next + 2}, {"content", "<b>"}});
              }),
              AllOf(HasSubstr("'<b>' has the id"), HasSubstr("without a gap")));
  EXPECT_THAT(refusal([](json& d) { d["model"].erase("vocab"); }), HasSubstr("'vocab'"));
  EXPECT_THAT(refusal([](json& d) { d["model"] = 3; }), HasSubstr("'model'"));
}

TEST(TokenizerFiles, ReadsSentencePieceModels) {
  const auto tokenizer = open_tokenizer_files(kGolden / "sentencepiece.model");
  EXPECT_EQ(tokenizer->token(tokenizer->end_of_document()), "</s>");
  const json cases = golden("sentencepiece");
  ASSERT_GT(cases.size(), 30U);
  for (const json& one : cases) {
    const std::string text = one["text"];
    std::vector<std::int32_t> ids;
    tokenizer->encode(text, ids);
    EXPECT_EQ(json(ids), one["ids"]) << json(text);
    EXPECT_EQ(tokenizer->decode(ids), one["decoded"]);
  }
}

TEST(TokenizerFiles, RefuseADamagedSentencePieceModel) {
  const std::string model = read_file(kGolden / "sentencepiece.model");
  const TempFolder folder;
  for (std::size_t bytes = 0; bytes < model.size(); bytes += 997) {
    write_file_durably(folder.path() / "cut.model", model.substr(0, bytes));
    try {
      (void)open_tokenizer_files(folder.path() / "cut.model");
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cut.model: "));
    }
  }
  write_file_durably(folder.path() / "cut.model", model.substr(0, model.size() / 2));
  EXPECT_THROW((void)open_tokenizer_files(folder.path() / "cut.model"), DataError);
}

TEST(TokenizerFiles, TravelWithADataset) {
  const TempFolder folder;
  write_file_durably(folder.path() / "tokenizer.json", golden("gpt2")["tokenizer"].dump());
  write_file_durably(folder.path() / "tokenizer_config.json", R"({"eos_token":{"content":"<s>"}})");
  const auto own = open_tokenizer(folder.path() / "tokenizer.json");
  EXPECT_EQ(own->end_of_document(), 1);
  store_tokenizer(folder.path(), "", folder.path() / "dataset");
  EXPECT_EQ(open_tokenizer(folder.path() / "dataset/tokenizer")->digest(), own->digest());
  EXPECT_NE(open_tokenizer(folder.path(), "</s>")->digest(), own->digest());
  EXPECT_THROW((void)open_tokenizer(folder.path(), "<none>"), ConfigError);
  EXPECT_THROW((void)open_tokenizer(folder.path() / "missing"), NotFound);
}

}  // namespace
}  // namespace trireme
