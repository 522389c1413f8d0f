#include "io/tokens/bpe_trainer.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/tokens/bpe_tokenizer.h"
#include "io/tokens/byte_level_files.h"
#include "io/tokens/word_counts.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::ElementsAre;

using Merges = std::vector<std::pair<std::int32_t, std::int32_t>>;

// Counts the words of texts, each of which is a document.
CountedWords count_texts(const std::vector<std::string>& texts, const std::string& pattern,
                         int threads) {
  const TempFolder folder;
  std::vector<TextShard> plans;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::ofstream(folder.path() / fmt::format("{:05}.jsonl", i))
        << json({{"text", texts[i]}}).dump() << "\n";
  }
  const InputFiles found = find_input_files({folder.path().string()}, {}, folder.path() / "none");
  const Selection all;
  return count_words({found.files, all, "text"}, plan_shards(found.files, all, 1000),
                     PreTokenizer(byte_level_pre_tokenizer(pattern)), threads);
}

// The file is from make_trainer_golden.py, which asks Hugging Face's trainer.
TEST(BpeTrainer, MergesWhatHuggingFacesTrainerMerges) {
  const json golden = json::parse(
      read_file(std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/io/tokens/golden/trained.json"));
  ASSERT_EQ(golden["cases"].size(), 6U);
  for (const json& one : golden["cases"]) {
    const std::vector<std::string> special = one["special"];
    const std::string pattern = one["pattern"];
    const CountedWords counted = count_texts(one["texts"], pattern, 2);
    const TrainedBpe trained =
        train_bpe(counted.words, {one["vocab"], one["min_frequency"], special});
    EXPECT_EQ(json(trained.tokens), one["tokens"]);
    const json merges = byte_level_definition(trained, special, pattern)["model"]["merges"];
    EXPECT_EQ(merges, one["merges"]);
    EXPECT_GT(merges.size(), 50U);
  }
}

TEST(BpeTrainer, MergesTheMostFrequentPairAndOfEqualOnesThatOfTheSmallestIds) {
  // Without special tokens, the ids of letters are their ASCII codes less 33.
  const auto id = [](char letter) { return letter - 33; };
  const TrainedBpe trained = train_bpe({{"cd", 3}, {"ab", 3}, {"yz", 1}, {"mn", 1}}, {259, 1, {}});
  EXPECT_EQ(trained.merges, (Merges{{id('a'), id('b')}, {id('c'), id('d')}, {id('m'), id('n')}}));
  EXPECT_THAT(trained.tokens_per_word, ElementsAre(1, 1, 2, 1));
  EXPECT_EQ(trained.tokens.at(256), "ab");
}

TEST(BpeTrainer, StopsWhenNoPairIsFrequentEnough) {
  EXPECT_EQ(train_bpe({{"ab", 1}, {"cd", 2}}, {1000, 2, {}}).merges.size(), 1U);
  EXPECT_TRUE(train_bpe({}, {1000, 1, {}}).merges.empty());
  EXPECT_THAT(message_of<ConfigError>([] {
                (void)train_bpe({}, {256, 1, {"<s>"}});
              }),
              testing::HasSubstr("a vocabulary of 256 ids is not possible"));
}

TEST(BpeTrainer, ThreadsAndOrderDoNotMatter) {
  const std::vector<std::string> texts = {"one two three one", "two, three; four", "one\n\none 12",
                                          "five six seven eight nine ten one two"};
  const CountedWords one = count_texts(texts, "llama3", 1);
  const CountedWords many = count_texts(texts, "llama3", 4);
  EXPECT_EQ(one.words, many.words);
  EXPECT_EQ(one.bytes, many.bytes);
  WordCounts reversed(one.words.rbegin(), one.words.rend());
  EXPECT_EQ(train_bpe(one.words, {300, 1, {}}).merges, train_bpe(reversed, {300, 1, {}}).merges);
}

TEST(BpeTrainer, TheTokenizerEncodesAsItWasTrained) {
  const std::vector<std::string> texts = {"the ship sails, the ship turns", "السفينة تبحر السفينة"};
  const CountedWords counted = count_texts(texts, "llama3", 1);
  const std::vector<std::string> special = {"<|endoftext|>", "<pad>"};
  const TrainedBpe trained = train_bpe(counted.words, {300, 1, special});
  const BpeTokenizer tokenizer(byte_level_definition(trained, special, "llama3"), "");
  EXPECT_EQ(tokenizer.end_of_document(), 0);
  std::int64_t expected = 0;
  for (std::size_t i = 0; i < counted.words.size(); ++i) {
    expected += counted.words[i].second * trained.tokens_per_word[i];
  }
  std::vector<std::int32_t> ids;
  for (const std::string& text : texts) {
    const auto before = static_cast<std::ptrdiff_t>(ids.size());
    tokenizer.encode(text, ids);
    EXPECT_EQ(tokenizer.decode({ids.begin() + before, ids.end()}), text);
  }
  EXPECT_EQ(std::ssize(ids), expected);
}

TEST(WordCounts, CountsWordsByScript) {
  EXPECT_EQ(script_of("12 ,"), Script::other);
  EXPECT_EQ(script_of("1é"), Script::latin);
  EXPECT_EQ(script_of("٣، عَ"), Script::arabic);
  EXPECT_EQ(script_of("×÷ж船"), Script::other);
  const std::string mixed = "one two 3 اَلْعَرَبِيَّةُ\nلغة Корабль";
  const CountedWords counted = count_texts({mixed, "four ?"}, "gpt2", 1);
  EXPECT_THAT(counted.spaced_words, ElementsAre(2, 3, 3));
}

}  // namespace
}  // namespace trireme
