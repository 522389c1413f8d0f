#include "io/tokens/bpe_model.h"

#include <algorithm>
#include <limits>
#include <queue>

#include <nlohmann/json.hpp>

#include "io/tokens/byte_characters.h"
#include "io/tokens/text_step.h"
#include "io/tokens/unicode.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kMostUnused = 65536;  // ids without a token
constexpr std::size_t kShortWord = 64;      // symbols; longer words are merged with a heap

void check_options(const nlohmann::json& value) {
  if (const std::string type = text_or(value, "type", "BPE"); type != "BPE") {
    refuse_type("model", type);
  }
  check_fields(value, "the model BPE",
               {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (value.contains("dropout") && !value["dropout"].is_null() && value["dropout"] != 0.0) {
    throw DataError(
        "the model BPE has dropout, which makes ids random: it is not supported, set it to null");
  }
  for (const char* option : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const std::string affix = text_or(value, option, ""); !affix.empty()) {
      throw DataError(
          fmt::format("the model BPE has {} '{}', which is not supported", option, affix));
    }
  }
}

// Returns the two texts of a merge, written as "a b" or ["a", "b"].
std::pair<std::string, std::string> parts_of(const nlohmann::json& merge, std::size_t number) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0], merge[1]};
  }
  if (merge.is_string()) {
    const std::string& text = merge.get_ref<const std::string&>();
    const std::size_t blank = text.find(' ');
    if (blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos) {
      return {text.substr(0, blank), text.substr(blank + 1)};
    }
  }
  throw DataError(fmt::format("merge {} is neither \"a b\" nor [\"a\", \"b\"]", number + 1));
}

// Whether U+2581 follows another character.
bool has_inner_mark(std::string_view token) {
  bool seen_other = false;
  for (std::size_t at = 0; at < token.size();) {
    const bool is_mark = token.substr(at).starts_with(kBlankMark);
    if (is_mark && seen_other) {
      return true;
    }
    seen_other = seen_other || !is_mark;
    (void)next_character(token, at);
  }
  return false;
}

}  // namespace

BpeModel::BpeModel(const nlohmann::json& value, bool bytes) : bytes_(bytes) {
  check_options(value);
  fuses_unknown_ = flag_or(value, "fuse_unk", false);
  falls_back_ = flag_or(value, "byte_fallback", false);
  ignores_merges_ = flag_or(value, "ignore_merges", false);
  read_vocabulary(object_field(value, "vocab"));
  may_cut_ = !bytes && !ignores_merges_ && id_of(kBlankMark).has_value();
  read_merges(array_field(value, "merges"));
  if (const std::string unknown = text_or(value, "unk_token", ""); !unknown.empty()) {
    const auto id = id_of(unknown);
    if (!id) {
      throw DataError(fmt::format("unk_token '{}' is not in the vocabulary", printable(unknown)));
    }
    unknown_ = *id;
  }
  find_first_symbols();
}

void BpeModel::read_vocabulary(const nlohmann::json& vocab) {
  const std::size_t limit = vocab.size() + kMostUnused;
  for (const auto& [token, value] : vocab.items()) {
    if (!value.is_number_unsigned() || value >= limit) {
      throw DataError(fmt::format(
          "token '{}' has the id {}, which is not from 0 to {}: there are "
          "only {} tokens",
          printable(token), value.is_number() ? value.dump() : "?", limit - 1, vocab.size()));
    }
    const auto id = value.get<std::int32_t>();
    if (static_cast<std::size_t>(id) >= tokens_.size()) {
      tokens_.resize(static_cast<std::size_t>(id) + 1);
    }
    std::optional<std::string>& slot = tokens_[static_cast<std::size_t>(id)];
    if (slot) {
      throw DataError(fmt::format("the tokens '{}' and '{}' both have the id {}", printable(*slot),
                                  printable(token), id));
    }
    slot = token;
    ids_.emplace(token, id);
  }
}

void BpeModel::read_merges(const nlohmann::json& merges) {
  merges_ = PairTable(merges.size());
  merge_count_ = merges.size();
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto [a, b] = parts_of(merges[i], i);
    const auto left = id_of(a);
    const auto right = id_of(b);
    const auto merged = id_of(a + b);
    if (!left || !right || !merged) {
      throw DataError(fmt::format("merge {} joins '{}' and '{}', but '{}' is not in the vocabulary",
                                  i + 1, printable(a), printable(b),
                                  printable(!left    ? a
                                            : !right ? b
                                                     : a + b)));
    }
    merges_.put(*left, *right, {static_cast<std::uint32_t>(i), *merged});
    may_cut_ = may_cut_ && !has_inner_mark(a + b);
  }
}

void BpeModel::find_first_symbols() {
  characters_.assign(bytes_ ? 256 : 0x110000, -1);
  byte_tokens_.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    if (const auto id = id_of(fmt::format("<0x{:02X}>", byte))) {
      byte_tokens_[static_cast<std::size_t>(byte)] = *id;
    }
  }
  for (const auto& [token, id] : ids_) {
    const std::optional<std::string> word = bytes_ ? from_byte_characters(token) : token;
    if (!word || word->empty()) {
      continue;
    }
    std::size_t end = 0;
    const char32_t first =
        bytes_ ? static_cast<unsigned char>(word->at(end++)) : next_character(*word, end);
    if (end == word->size()) {
      characters_[first] = id;
    }
    if (ignores_merges_) {
      word_texts_.push_back(*word);
    }
  }
  for (const std::string& text : word_texts_) {
    whole_words_.emplace(text, *id_of(bytes_ ? to_byte_characters(text) : text));
  }
}

std::optional<std::int32_t> BpeModel::id_of(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::int32_t> BpeModel::fallback_of(std::string_view character) const {
  std::vector<std::int32_t> ids;
  for (const char byte : bytes_ ? to_byte_characters(character) : std::string(character)) {
    const std::int32_t id = byte_tokens_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      return {};
    }
    ids.push_back(id);
  }
  return ids;
}

void BpeModel::first_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const {
  bool unknown_waits = false;
  const auto flush = [&] {
    if (unknown_waits) {
      symbols.push_back(unknown_);
    }
    unknown_waits = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t start = at;
    const char32_t code =
        bytes_ ? static_cast<unsigned char>(word[at++]) : next_character(word, at);
    if (const std::int32_t id = characters_[code]; id >= 0) {
      flush();
      symbols.push_back(id);
      continue;
    }
    if (falls_back_) {
      // An unknown character in front of it stays waiting, as in Hugging Face's tokenizers.
      if (const auto ids = fallback_of(word.substr(start, at - start)); !ids.empty()) {
        symbols.insert(symbols.end(), ids.begin(), ids.end());
        continue;
      }
    }
    if (unknown_ >= 0) {
      if (!fuses_unknown_) {
        flush();
      }
      unknown_waits = true;
    }
  }
  flush();
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (ignores_merges_) {
    if (const auto found = whole_words_.find(word); found != whole_words_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  first_symbols(word, symbols);
  symbols.size() <= kShortWord ? merge_short(symbols) : merge_long(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void BpeModel::merge_short(std::vector<std::int32_t>& symbols) const {
  constexpr Merge kNone{std::numeric_limits<std::uint32_t>::max(), -1};
  std::array<Merge, kShortWord> next;  // of each symbol and the one after it
  std::size_t count = symbols.size();
  const auto look = [&](std::size_t i) {
    const Merge* const found = i + 1 < count ? merges_.find(symbols[i], symbols[i + 1]) : nullptr;
    next[i] = found == nullptr ? kNone : *found;
  };
  for (std::size_t i = 0; i < count; ++i) {
    look(i);
  }
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      best = next[i].rank < next[best].rank ? i : best;
    }
    if (next[best].id < 0) {
      break;
    }
    symbols[best] = next[best].id;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      next[i] = next[i + 1];
    }
    --count;
    look(best);
    if (best > 0) {
      look(best - 1);
    }
  }
  symbols.resize(count);
}

void BpeModel::merge_long(std::vector<std::int32_t>& symbols) const {
  struct Waiting {
    std::uint32_t rank;
    std::uint32_t at;
    std::int32_t id;
    bool operator>(const Waiting& b) const { return rank != b.rank ? rank > b.rank : at > b.at; }
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> before(count);  // neighbours; count = none
  std::vector<std::uint32_t> after(count);
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue;
  const auto look = [&](std::uint32_t at) {
    if (at == count || after[at] == count) {
      return;
    }
    if (const Merge* found = merges_.find(symbols[at], symbols[after[at]]); found != nullptr) {
      queue.push({found->rank, at, found->id});
    }
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? count : i - 1;
    after[i] = i + 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    look(i);
  }
  while (!queue.empty()) {
    const Waiting top = queue.top();
    queue.pop();
    if (symbols[top.at] < 0 || after[top.at] == count) {
      continue;  // merged since
    }
    const std::uint32_t right = after[top.at];
    const Merge* const found = merges_.find(symbols[top.at], symbols[right]);
    if (found == nullptr || found->rank != top.rank) {
      continue;
    }
    symbols[top.at] = top.id;
    symbols[right] = -1;
    after[top.at] = after[right];
    if (after[right] != count) {
      before[after[right]] = top.at;
    }
    look(before[top.at]);
    look(top.at);
  }
  std::erase(symbols, -1);
}

}  // namespace trireme
