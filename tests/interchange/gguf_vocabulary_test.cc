#include "src/interchange/gguf_vocabulary.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/tokenizer.h"
#include "io/tokens/unicode.h"
#include "mpi/self_communicator.h"
#include "src/interchange/export_gguf.h"
#include "src/interchange/export_hf.h"
#include "src/interchange/gguf_file.h"
#include "src/interchange/import_model.h"
#include "tests/interchange/small_models.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kGolden = fs::path(TRIREME_SOURCE_DIR) / "tests/io/tokens/golden";

TokenizerFiles golden(const std::string& kind) {
  TokenizerFiles files;
  files.definition = json::parse(read_file(kGolden / (kind + ".json")))["tokenizer"];
  return files;
}

TokenizerFiles sentencepiece() { return read_tokenizer_files(kGolden / "sentencepiece.model"); }

template <class T>
const T& value(const GgufVocabulary& vocabulary, const std::string& key) {
  return std::get<T>(vocabulary.values.at("tokenizer." + key));
}

std::string pre_of(const TokenizerFiles& files) {
  const GgufVocabulary vocabulary = gguf_vocabulary(files, 1024);
  return vocabulary.missing.empty() ? value<std::string>(vocabulary, "ggml.pre")
                                    : vocabulary.missing;
}

TEST(GgufVocabulary, NamesTheExpressionThatCutsWords) {
  EXPECT_EQ(pre_of(golden("gpt2")), "gpt-2");
  EXPECT_EQ(pre_of(golden("qwen2")), "qwen2");
  TokenizerFiles llama3 = golden("llama3");
  llama3.definition["model"]["ignore_merges"] = true;
  EXPECT_EQ(pre_of(llama3), "llama-bpe");
  llama3.definition["model"]["ignore_merges"] = false;
  EXPECT_EQ(pre_of(llama3), "dbrx") << "the same expression for merges that are respected";
  TokenizerFiles tekken = golden("tekken");
  EXPECT_THAT(pre_of(tekken), HasSubstr("does not cut words")) << "llama.cpp ignores its merges";
  tekken.definition["model"]["ignore_merges"] = true;
  EXPECT_EQ(pre_of(tekken), "tekken");
  TokenizerFiles digits = golden("gpt2");
  digits.definition["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, digits.definition["pre_tokenizer"]}}};
  EXPECT_EQ(pre_of(digits), "smollm");
  digits.definition["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
  EXPECT_THAT(pre_of(digits), HasSubstr("does not cut words"));
}

TEST(GgufVocabulary, LeavesOutTokenizersThatLlamaCppDoesNotHave) {
  EXPECT_THAT(pre_of(golden("falcon")), HasSubstr("does not cut words"));
  EXPECT_THAT(pre_of(golden("gpt2-prefix")), HasSubstr("add_prefix_space"));
  EXPECT_THAT(pre_of(golden("words")), HasSubstr("no byte_fallback"));
  EXPECT_THAT(gguf_vocabulary(golden("gpt2"), 10).missing, HasSubstr("the model only 10"));
  TokenizerFiles lower = golden("gpt2");
  lower.definition["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", "A"}}}, {"content", "a"}};
  EXPECT_THAT(pre_of(lower), HasSubstr("its normalizer Replace"));
  TokenizerFiles unknown = golden("gpt2");
  unknown.definition["model"]["vocab"] = 3;
  const GgufVocabulary none = gguf_vocabulary(unknown, 1024);
  EXPECT_EQ(none.values.size(), 1U);
  EXPECT_EQ(value<std::string>(none, "ggml.model"), "none");
  EXPECT_THAT(none.missing, HasSubstr("vocab"));
}

TEST(GgufVocabulary, HasTheTokensMergesAndIdsOfTheTokenizer) {
  TokenizerFiles files = golden("gpt2");
  files.definition["added_tokens"].push_back({{"id", 330U},
                                              {"content", "[PAD331]"},
                                              {"single_word", false},
                                              {"lstrip", true},
                                              {"rstrip", false},
                                              {"normalized", false},
                                              {"special", false}});
  files.config = {{"pad_token", {{"content", "[PAD331]"}}},
                  {"chat_template", "{{ messages[0].content }}"}};
  const BpeTokenizer tokenizer(files.definition, "");
  const GgufVocabulary vocabulary = gguf_vocabulary(files, 340);
  ASSERT_EQ(vocabulary.missing, "");
  EXPECT_THAT(vocabulary.otherwise, ElementsAre(HasSubstr("'[PAD331]' by its text alone")));
  const auto& texts = value<std::vector<std::string>>(vocabulary, "ggml.tokens");
  const auto& kinds = value<std::vector<std::int32_t>>(vocabulary, "ggml.token_type");
  ASSERT_EQ(texts.size(), 340U);
  ASSERT_EQ(kinds.size(), 340U);
  for (const AddedToken& added : tokenizer.added().all()) {
    EXPECT_EQ(kinds[static_cast<std::size_t>(added.id)], added.special ? 3 : 4) << added.content;
  }
  EXPECT_EQ(texts[65], tokenizer.token(65));
  EXPECT_EQ(kinds[65], 1);
  EXPECT_EQ(texts[339], "[PAD339]");
  EXPECT_EQ(texts[331], "[PAD][PAD331]") << "each text occurs once";
  EXPECT_EQ(kinds[339], 5);
  const auto& merges = value<std::vector<std::string>>(vocabulary, "ggml.merges");
  EXPECT_EQ(merges.size(), tokenizer.model().merge_count());
  EXPECT_EQ(value<std::uint32_t>(vocabulary, "ggml.padding_token_id"), 330U);
  const auto end = static_cast<std::uint32_t>(tokenizer.end_of_document());
  EXPECT_EQ(value<std::uint32_t>(vocabulary, "ggml.eos_token_id"), end);
  EXPECT_EQ(value<std::uint32_t>(vocabulary, "ggml.bos_token_id"), end);
  EXPECT_FALSE(value<bool>(vocabulary, "ggml.add_bos_token"));
  EXPECT_EQ(value<std::string>(vocabulary, "chat_template"), "{{ messages[0].content }}");
}

// llama.cpp's algorithm for the model "llama": the two neighbours whose token has the highest score
// are merged, of several the leftmost, and characters without a token become bytes.
std::vector<std::int32_t> merge_by_scores(const GgufVocabulary& vocabulary, std::string text) {
  const auto& texts = value<std::vector<std::string>>(vocabulary, "ggml.tokens");
  const auto& scores = value<std::vector<float>>(vocabulary, "ggml.scores");
  std::unordered_map<std::string, std::int32_t> ids;
  for (std::size_t id = 0; id < texts.size(); ++id) {
    ids[texts[id]] = static_cast<std::int32_t>(id);
  }
  if (value<bool>(vocabulary, "ggml.add_space_prefix")) {
    text.insert(0, " ");
  }
  std::vector<std::string> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const bool is_blank = next_character(text, at) == U' ';
    symbols.push_back(is_blank ? std::string(kBlankMark) : text.substr(begin, at - begin));
  }
  while (true) {
    float best = -std::numeric_limits<float>::infinity();
    std::size_t at = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ids.find(symbols[i] + symbols[i + 1]);
      if (found != ids.end() && scores[static_cast<std::size_t>(found->second)] > best) {
        best = scores[static_cast<std::size_t>(found->second)];
        at = i;
      }
    }
    if (at == symbols.size()) {
      break;
    }
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<std::int32_t> result;
  for (const std::string& symbol : symbols) {
    if (const auto found = ids.find(symbol); found != ids.end()) {
      result.push_back(found->second);
      continue;
    }
    for (const char byte : symbol) {
      result.push_back(ids.at(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte))));
    }
  }
  return result;
}

TEST(GgufVocabulary, ScoresGiveTheIdsOfTheMerges) {
  const TokenizerFiles files = sentencepiece();
  const BpeTokenizer tokenizer(files.definition, files.end_token);
  const GgufVocabulary vocabulary = gguf_vocabulary(files, tokenizer.vocab());
  ASSERT_EQ(vocabulary.missing, "");
  EXPECT_EQ(value<std::string>(vocabulary, "ggml.model"), "llama");
  const auto& kinds = value<std::vector<std::int32_t>>(vocabulary, "ggml.token_type");
  EXPECT_THAT(kinds, Contains(2).Times(1)) << "unknown";
  EXPECT_THAT(kinds, Contains(6).Times(256)) << "bytes";
  int texts = 0;
  int merged = 0;
  for (const json& one : json::parse(read_file(kGolden / "sentencepiece.json"))) {
    const std::string text = one["text"];
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, ids);
    const bool has_added = std::ranges::any_of(
        ids, [&](std::int32_t id) { return tokenizer.added().find(id) != nullptr; });
    if (has_added || text.empty()) {
      continue;
    }
    EXPECT_EQ(merge_by_scores(vocabulary, text), ids) << json(text);
    ++texts;
    merged += ids.size() < text.size() ? 1 : 0;
  }
  EXPECT_GT(texts, 30);
  EXPECT_GT(merged, 8);
}

TEST(GgufVocabulary, LeavesOutMergesThatAreNoScores) {
  const std::int64_t rows = 1024;
  TokenizerFiles files = sentencepiece();
  const json merges = files.definition["model"]["merges"];
  ASSERT_GT(merges.size(), 20U);
  files.definition["model"]["merges"].erase(3);
  EXPECT_THAT(gguf_vocabulary(files, rows).missing, HasSubstr("which SentencePiece would"));
  files.definition["model"]["merges"] = merges;
  std::map<std::string, std::vector<std::size_t>> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    ranks[merges[i][0].get<std::string>() + merges[i][1].get<std::string>()].push_back(i);
  }
  const auto several =
      std::ranges::find_if(ranks, [](const auto& r) { return r.second.size() > 1; });
  ASSERT_NE(several, ranks.end());
  const std::size_t first = several->second.front();
  std::swap(files.definition["model"]["merges"][first],
            files.definition["model"]["merges"][first == 0 ? merges.size() - 1 : 0]);
  EXPECT_THAT(gguf_vocabulary(files, rows).missing, HasSubstr("not next to each other"));
  files.definition["model"]["merges"] = merges;
  files.definition["model"]["byte_fallback"] = false;
  EXPECT_THAT(gguf_vocabulary(files, rows).missing, HasSubstr("byte_fallback"));
}

// Tokens of blanks have one score in well-known models, so that their merges take turns.
TEST(GgufVocabulary, RunsOfBlanksHaveOneScore) {
  TokenizerFiles files = sentencepiece();
  json& model = files.definition["model"];
  const auto run = [](std::size_t blanks) {
    std::string text;
    while (blanks-- > 0) {
      text += kBlankMark;
    }
    return text;
  };
  const std::size_t first = model["vocab"].size();
  for (const std::size_t blanks : {2, 3, 4}) {
    ASSERT_FALSE(model["vocab"].contains(run(blanks)));
    model["vocab"][run(blanks)] = first + blanks - 2;
  }
  const std::size_t before = model["merges"].size();
  for (const auto& [left, right] : {std::pair(3, 1), {2, 2}, {2, 1}, {1, 3}, {1, 2}, {1, 1}}) {
    model["merges"].push_back(
        {run(static_cast<std::size_t>(left)), run(static_cast<std::size_t>(right))});
  }
  const GgufVocabulary vocabulary = gguf_vocabulary(files, 1024);
  ASSERT_EQ(vocabulary.missing, "");
  EXPECT_THAT(vocabulary.otherwise, IsEmpty());
  const auto& scores = value<std::vector<float>>(vocabulary, "ggml.scores");
  EXPECT_LT(scores[first], scores[first + 2]) << "the last merge is the only one into it";
  EXPECT_EQ(scores[first + 1], scores[first + 2]);
  const BpeTokenizer tokenizer(files.definition, files.end_token);
  for (std::size_t blanks = 1; blanks < 15; ++blanks) {
    const std::string text = "a" + std::string(blanks, ' ') + "b";
    std::vector<std::int32_t> ids;
    tokenizer.encode(text, ids);
    EXPECT_EQ(merge_by_scores(vocabulary, text), ids) << blanks;
  }
  std::swap(model["merges"][before], model["merges"][before + 2]);
  EXPECT_THAT(gguf_vocabulary(files, 1024).otherwise,
              ElementsAre(HasSubstr("several blanks in a row")));
}

TEST(GgufVocabulary, SaysWhereLlamaCppDiffers) {
  EXPECT_THAT(gguf_vocabulary(golden("qwen2"), 1024).otherwise,
              ElementsAre(HasSubstr("does not normalize text (NFC)")));
  TokenizerFiles mistral = sentencepiece();
  mistral.definition["normalizer"] = nullptr;
  mistral.definition["pre_tokenizer"] = {{"type", "Metaspace"},
                                         {"replacement", kBlankMark},
                                         {"prepend_scheme", "first"},
                                         {"split", false}};
  const GgufVocabulary vocabulary = gguf_vocabulary(mistral, 1024);
  EXPECT_EQ(vocabulary.missing, "");
  EXPECT_THAT(vocabulary.otherwise, ElementsAre(HasSubstr("after each special token")));
  EXPECT_TRUE(value<bool>(vocabulary, "ggml.add_space_prefix"));
  EXPECT_TRUE(value<bool>(vocabulary, "ggml.add_bos_token"));
  TokenizerFiles several = golden("gpt2");
  several.config = {{"chat_template", json::array({{{"name", "rag"}, {"template", "x"}}})}};
  EXPECT_THAT(gguf_vocabulary(several, 1024).otherwise, ElementsAre(HasSubstr("no chat template")));
}

// A second end, as config.json names it, is one of a turn; a third one, of a message.
TEST(GgufVocabulary, StopsWhereTheModelStops) {
  const TokenizerFiles files = golden("gpt2");
  const auto end = BpeTokenizer(files.definition, "").end_of_document();
  const GgufVocabulary none = gguf_vocabulary(files, 1024, {.ends = {end}});
  EXPECT_FALSE(none.values.contains("tokenizer.ggml.eot_token_id"));
  const GgufVocabulary several = gguf_vocabulary(files, 1024, {.ends = {7, end, 8, 9}});
  EXPECT_EQ(value<std::uint32_t>(several, "ggml.eos_token_id"), static_cast<std::uint32_t>(end));
  EXPECT_EQ(value<std::uint32_t>(several, "ggml.eot_token_id"), 7U);
  EXPECT_EQ(value<std::uint32_t>(several, "ggml.eom_token_id"), 8U);
  EXPECT_THAT(several.otherwise, ElementsAre(HasSubstr("may not stop at the token 9")));
  // The files of an imported model have the last word.
  const GgufVocabulary other =
      gguf_vocabulary(files, 1024, {.ends = {7}, .has_no_other_ends = true});
  EXPECT_EQ(value<std::uint32_t>(other, "ggml.eos_token_id"), 7U);
  EXPECT_THAT(other.otherwise, IsEmpty());
  const GgufVocabulary no_end = gguf_vocabulary(files, 1024, {.has_no_other_ends = true});
  EXPECT_THAT(no_end.otherwise, ElementsAre(HasSubstr("at which the model's files end no text")));
  EXPECT_TRUE(value<bool>(gguf_vocabulary(sentencepiece(), 1024), "ggml.add_bos_token"));
  EXPECT_FALSE(
      value<bool>(gguf_vocabulary(sentencepiece(), 1024, {.begins = false}), "ggml.add_bos_token"));
}

TEST(GgufVocabulary, WritesBytesAsTheirCharacters) {
  const GgufVocabulary vocabulary = gguf_byte_vocabulary(260);
  const auto& texts = value<std::vector<std::string>>(vocabulary, "ggml.tokens");
  ASSERT_EQ(texts.size(), 260U);
  EXPECT_EQ(texts['a'], "a");
  EXPECT_EQ(texts[' '], "\u0120");
  EXPECT_EQ(texts[256], "<|endoftext|>");
  EXPECT_EQ(value<std::uint32_t>(vocabulary, "ggml.eos_token_id"), 256U);
  EXPECT_THAT(value<std::vector<std::string>>(vocabulary, "ggml.merges"), IsEmpty());
  EXPECT_THAT(gguf_byte_vocabulary(256).missing, HasSubstr("257 ids"));
}

TEST(GgufVocabulary, AnExportCarriesTheTokenizerOfTheModel) {
  const TempFolder folder;
  SelfCommunicator self;
  StepKeys keys(self, {});
  const fs::path source = folder.path() / "source";
  copy_golden("gpt2", source);
  const auto exported = [&](const std::string& name) {
    import_model({.source = source, .out = folder.path() / (name + "-imported")}, self, keys);
    return export_to_gguf(
        {.checkpoint = folder.path() / (name + "-imported"), .out = folder.path() / name},
        GgufType::f16, self, keys);
  };
  EXPECT_THAT(exported("without").warning, HasSubstr("no tokenizer"));
  EXPECT_EQ(GgufFile(folder.path() / "without/model.gguf").head().values.at("tokenizer.ggml.model"),
            GgufValue(std::string("none")));
  // The model has 40 ids.
  TokenizerFiles files = golden("gpt2");
  json& model = files.definition["model"];
  std::erase_if(model["vocab"].get_ref<json::object_t&>(),
                [](const auto& token) { return token.second >= 40; });
  model["merges"] = json::array();
  write_file_durably(source / "tokenizer.json", files.definition.dump());
  const ExportResult result = exported("with");
  EXPECT_EQ(result.warning, "");
  EXPECT_EQ(result.tokenizer, "40 tokens as gpt2 (gpt-2)");
  EXPECT_TRUE(fs::exists(folder.path() / "with/tokenizer.json"));
  write_file_durably(source / "tokenizer.json", files.definition.dump().substr(0, 100));
  const ExportResult damaged = exported("damaged");
  EXPECT_THAT(damaged.warning, HasSubstr("only: tokenizer.json: not JSON")) << "no draft's path";
  write_file_durably(source / "tokenizer.json", golden("gpt2").definition.dump());
  const ImportResult large =
      import_model({.source = source, .out = folder.path() / "large"}, self, keys);
  EXPECT_THAT(large.warning, HasSubstr("cannot be used: it has 330 ids, but the model only 40"));
  EXPECT_THAT(
      export_to_hf({.checkpoint = folder.path() / "large", .out = folder.path() / "hf"}, self, keys)
          .warning,
      HasSubstr("330 ids"));
  const GgufHead head = GgufFile(folder.path() / "with/model.gguf").head();
  // The model's config.json has 0 as its end, and the tokenizer another token.
  const GgufTextHabits habits = {.ends = {0}, .has_no_other_ends = true};
  for (const auto& [key, value] : gguf_vocabulary(files, 40, habits).values) {
    EXPECT_EQ(head.values.at(key), value) << key;
  }
}

}  // namespace
}  // namespace trireme
