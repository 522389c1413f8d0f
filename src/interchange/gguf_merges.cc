#include "src/interchange/gguf_merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "io/tokens/split_patterns.h"
#include "io/tokens/text_step.h"
#include "io/tokens/unicode.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::size_t kMostCharacters = 1024;  // of a token with scores; in practice some dozen

// The names that llama.cpp has for well-known expressions. Some stand for a model which takes a
// word that is a token as it is, without merging; "" = there is no such name.
struct PreName {
  std::string_view pattern;  // of split_patterns.h
  std::string_view merging;
  std::string_view ignoring_merges;
};
constexpr std::array<PreName, 4> kPreNames = {{{"gpt2", "gpt-2", ""},
                                               {"llama3", "dbrx", "llama-bpe"},
                                               {"qwen2", "qwen2", ""},
                                               {"tekken", "", "tekken"}}};

// Appends the steps of a normalizer or a pre-tokenizer, which may be sequences of steps.
void add_steps(const json& value, const char* list, std::vector<const json*>& steps) {
  if (value.is_null()) {
    return;
  }
  if (text_field(value, "type") == "Sequence") {
    for (const json& each : array_field(value, list)) {
      add_steps(each, list, steps);
    }
  } else {
    steps.push_back(&value);
  }
}

std::vector<const json*> steps_of(const json& definition, const char* part, const char* list) {
  std::vector<const json*> steps;
  if (definition.contains(part)) {
    add_steps(definition[part], list, steps);
  }
  return steps;
}

bool is_type(const json& step, std::string_view type) { return text_field(step, "type") == type; }

bool is_normal_form(const json& step) { return text_field(step, "type").starts_with("NF"); }

// Returns the two texts of a merge.
std::pair<std::string, std::string> parts_of(const json& merge) {
  if (merge.is_array()) {
    return {merge[0], merge[1]};
  }
  const std::string text = merge;
  const std::size_t blank = text.find(' ');
  return {text.substr(0, blank), text.substr(blank + 1)};
}

// Returns the name of the expression by which a byte-level tokenizer cuts words.
std::string pre_name(const std::vector<const json*>& steps, bool ignores_merges) {
  const json& last = *steps.back();
  if (!is_type(last, "ByteLevel") || steps.size() > 2) {
    throw DataError("llama.cpp does not cut words as its pre-tokenizer does");
  }
  if (flag_or(last, "add_prefix_space", true)) {
    throw DataError(
        "it puts a blank in front of a text (add_prefix_space), which llama.cpp does not do for "
        "byte-level tokenizers");
  }
  const bool uses_regex = flag_or(last, "use_regex", true);
  SplitScanner scanner = uses_regex ? &scan_gpt2 : nullptr;
  if (steps.size() == 2) {
    const json& first = *steps.front();
    if (uses_regex && is_type(first, "Digits") && flag_or(first, "individual_digits", false)) {
      if (!ignores_merges) {
        return "smollm";
      }
      scanner = nullptr;
    } else if (is_type(first, "Split") && !uses_regex && first["pattern"].contains("Regex")) {
      scanner = scanner_of(text_field(first["pattern"], "Regex"));
    } else {
      scanner = nullptr;
    }
  }
  for (const PreName& name : kPreNames) {
    const std::string_view found = ignores_merges ? name.ignoring_merges : name.merging;
    if (scanner != nullptr && scanner == scanner_of(regex_named(name.pattern)) && !found.empty()) {
      return std::string(found);
    }
  }
  throw DataError("llama.cpp does not cut words as its pre-tokenizer does");
}

GgufMerges byte_level_merges(const json& definition) {
  GgufMerges result{.model = "gpt2"};
  for (const json* step : steps_of(definition, "normalizer", "normalizers")) {
    if (!is_normal_form(*step)) {
      throw DataError(fmt::format("llama.cpp does not change text as its normalizer {} does",
                                  text_field(*step, "type")));
    }
    result.otherwise.push_back(
        fmt::format("it does not normalize text ({})", text_field(*step, "type")));
  }
  const json& model = definition["model"];
  result.pre = pre_name(steps_of(definition, "pre_tokenizer", "pretokenizers"),
                        flag_or(model, "ignore_merges", false));
  for (const json& merge : model["merges"]) {
    auto [a, b] = parts_of(merge);
    if ((a + b).find(' ') != std::string::npos) {
      throw DataError(
          fmt::format("its merge of '{}' and '{}' has a blank, at which llama.cpp cuts "
                      "merges",
                      printable(a), printable(b)));
    }
    result.merges.push_back(a + ' ' + b);
  }
  return result;
}

// Sets what stands for blanks, and whether one is put in front of a text.
void read_blanks(const json& definition, const BpeTokenizer& tokenizer, GgufMerges& result) {
  bool marks = false;
  for (const json* step : steps_of(definition, "normalizer", "normalizers")) {
    if (is_type(*step, "Prepend") && text_field(*step, "prepend") == kBlankMark && !marks) {
      result.adds_blank = true;
    } else if (is_type(*step, "Replace") && text_pattern(*step, "normalizer Replace") == " " &&
               text_field(*step, "content") == kBlankMark) {
      marks = true;
    } else {
      throw DataError(fmt::format("llama.cpp does not change text as its normalizer {} does",
                                  text_field(*step, "type")));
    }
  }
  const std::vector<const json*> cuts = steps_of(definition, "pre_tokenizer", "pretokenizers");
  if (cuts.size() == 1 && !result.adds_blank && is_type(*cuts[0], "Metaspace") &&
      text_or(*cuts[0], "replacement", std::string(kBlankMark)) == kBlankMark &&
      (!flag_or(*cuts[0], "split", true) || tokenizer.model().may_cut_at_marks())) {
    marks = true;
    const std::string scheme =
        text_or(*cuts[0], "prepend_scheme",
                flag_or(*cuts[0], "add_prefix_space", true) ? "always" : "never");
    result.adds_blank = scheme != "never";
    if (result.adds_blank) {
      result.otherwise.push_back(
          fmt::format("it puts a blank in front of text{}, even in front of another blank",
                      scheme == "first" ? " after each special token, too" : ""));
    }
  } else if (!cuts.empty()) {
    throw DataError("llama.cpp does not cut words as its pre-tokenizer does");
  }
  if (!marks) {
    throw DataError("llama.cpp knows tokenizers of bytes, and those that write a blank as U+2581");
  }
}

void find_bytes(const BpeTokenizer& tokenizer, GgufMerges& result) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = tokenizer.model().id_of(fmt::format("<0x{:02X}>", byte));
    if (!id) {
      throw DataError(fmt::format(
          "it has no token <0x{:02X}>, without which llama.cpp fails for unknown characters",
          byte));
    }
    result.bytes.insert(*id);
  }
}

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    (void)next_character(text, at);
  }
  return count;
}

// A merge as SentencePiece sees it.
struct ScoredMerge {
  std::string product;
  std::int32_t id;   // of the product
  std::size_t left;  // characters
  std::size_t right;
};

std::vector<ScoredMerge> scored_merges_of(const json& merges, const BpeTokenizer& tokenizer) {
  std::vector<ScoredMerge> result;
  for (const json& merge : merges) {
    const auto [a, b] = parts_of(merge);
    result.push_back({a + b, *tokenizer.model().id_of(a + b), characters_in(a), characters_in(b)});
  }
  return result;
}

bool is_blank_run(const ScoredMerge& merge) {
  return replaced(merge.product, kBlankMark, "").empty();
}

// Checks merges into several tokens which take turns, so that the tokens have one score. Hugging
// Face's converter puts such merges in the order of the lengths of their parts.
void check_equal_scores(std::span<const ScoredMerge> merges, GgufMerges& result) {
  const auto lengths = [](const ScoredMerge& m) { return std::pair(m.left, m.right); };
  if (std::ranges::is_sorted(merges, std::greater<>(), lengths)) {
    return;
  }
  if (!std::ranges::all_of(merges, is_blank_run)) {
    throw DataError(fmt::format(
        "its merges into '{}' are not next to each other, as they are with SentencePiece",
        printable(merges.front().product)));
  }
  result.otherwise.emplace_back("it may cut several blanks in a row in another way");
}

// Gives scores to the tokens that merges make: the first merge has the highest one. Throws
// DataError if ranks say more than scores can.
void score_products(const json& merges, const BpeTokenizer& tokenizer, GgufMerges& result) {
  const std::vector<ScoredMerge> all = scored_merges_of(merges, tokenizer);
  std::unordered_map<std::int32_t, std::size_t> last;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    last[all[rank].id] = rank;
  }
  float score = -1;
  for (std::size_t begin = 0; begin < all.size(); score -= 1) {
    std::size_t end = begin + 1;
    bool has_several = false;
    for (std::size_t rank = begin; rank < end; ++rank) {
      end = std::max(end, last[all[rank].id] + 1);
      has_several = has_several || all[rank].id != all[begin].id;
      result.scores[static_cast<std::size_t>(all[rank].id)] = score;
    }
    if (has_several) {
      check_equal_scores(std::span(all).subspan(begin, end - begin), result);
    }
    begin = end;
  }
}

// SentencePiece merges each two tokens that make a third one. Throws DataError if some of these
// pairs are no merges.
void check_complete(const json& merges, const BpeTokenizer& tokenizer, const GgufMerges& result) {
  std::unordered_set<std::string> pairs;
  for (const json& merge : merges) {
    const auto [a, b] = parts_of(merge);
    pairs.insert(a + '\0' + b);
  }
  const BpeModel& model = tokenizer.model();
  const auto is_part = [&](std::string_view text) {
    const auto id = model.id_of(text);
    return id && tokenizer.added().find(*id) == nullptr && !result.bytes.contains(*id);
  };
  for (const auto& token : model.tokens()) {
    if (!token || !is_part(*token)) {
      continue;
    }
    const std::string_view text = *token;
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size();) {
      (void)next_character(text, at);
      if (++characters > kMostCharacters) {
        throw DataError(fmt::format("it has a token of more than {} characters", kMostCharacters));
      }
      const std::string_view a = text.substr(0, at);
      const std::string_view b = text.substr(at);
      if (!b.empty() && is_part(a) && is_part(b) &&
          !pairs.contains(std::string(a) + '\0' + std::string(b))) {
        throw DataError(fmt::format(
            "it does not merge '{}' and '{}', which SentencePiece would, since '{}' is a token",
            printable(a), printable(b), printable(text)));
      }
    }
  }
}

GgufMerges scored_merges(const json& definition, const BpeTokenizer& tokenizer, std::int64_t rows) {
  const json& model = definition["model"];
  if (!flag_or(model, "byte_fallback", false) || flag_or(model, "ignore_merges", false)) {
    throw DataError("its BPE has no byte_fallback, or ignores merges, other than SentencePiece's");
  }
  GgufMerges result{.model = "llama", .pre = "default"};
  result.scores.assign(static_cast<std::size_t>(rows),
                       -1 - static_cast<float>(model["merges"].size()));
  read_blanks(definition, tokenizer, result);
  find_bytes(tokenizer, result);
  if (const std::string unknown = text_or(model, "unk_token", ""); !unknown.empty()) {
    result.unknown = *tokenizer.model().id_of(unknown);
  }
  score_products(model["merges"], tokenizer, result);
  check_complete(model["merges"], tokenizer, result);
  return result;
}

}  // namespace

GgufMerges gguf_merges(const json& definition, const BpeTokenizer& tokenizer, std::int64_t rows) {
  const std::vector<const json*> cuts = steps_of(definition, "pre_tokenizer", "pretokenizers");
  if (tokenizer.vocab() > rows) {
    throw DataError(fmt::format("it has {} ids, but the model only {}", tokenizer.vocab(), rows));
  }
  const bool makes_bytes =
      std::ranges::any_of(cuts, [](const json* step) { return is_type(*step, "ByteLevel"); });
  return makes_bytes ? byte_level_merges(definition) : scored_merges(definition, tokenizer, rows);
}

}  // namespace trireme
