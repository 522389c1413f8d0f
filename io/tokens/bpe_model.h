// Byte pair encoding (Sennrich et al. 2016): the "model" of tokenizer.json. A word is cut into
// characters, or bytes, and the pair of neighbours whose merge has the lowest rank is merged until
// none is left. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/tokens/pair_table.h"

namespace trireme {

// U+2581, which stands for a blank in SentencePiece-style vocabularies.
inline constexpr std::string_view kBlankMark = "\xE2\x96\x81";

class BpeModel {
 public:
  // Throws DataError for a model other than BPE, an unknown option, a merge outside the vocabulary
  // and ids that are not distinct. `bytes`: the words are bytes (TextPart::is_bytes).
  BpeModel(const nlohmann::json& value, bool bytes);

  // Appends the ids of one word: of bytes or of valid UTF-8. Takes memory in proportion to it.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  // Returns nothing for text that is no token.
  std::optional<std::int32_t> id_of(std::string_view token) const;
  // The text of each id as written in the file; an id that is not used has none.
  const std::vector<std::optional<std::string>>& tokens() const { return tokens_; }
  std::size_t size() const { return ids_.size(); }
  // Whether a word may be cut in front of each run of U+2581 without any effect on the ids.
  bool may_cut_at_marks() const { return may_cut_; }
  std::size_t merge_count() const { return merge_count_; }

 private:
  void read_vocabulary(const nlohmann::json& vocab);
  void read_merges(const nlohmann::json& merges);
  void find_first_symbols();
  std::vector<std::int32_t> fallback_of(std::string_view character) const;
  void first_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const;
  void merge_short(std::vector<std::int32_t>& symbols) const;
  void merge_long(std::vector<std::int32_t>& symbols) const;

  bool bytes_;
  bool fuses_unknown_ = false;
  bool falls_back_ = false;
  bool ignores_merges_ = false;
  bool may_cut_ = false;
  std::size_t merge_count_ = 0;
  std::int32_t unknown_ = -1;
  std::vector<std::optional<std::string>> tokens_;
  std::unordered_map<std::string, std::int32_t> ids_;
  // If merges are ignored: ids by the words that they stand for.
  std::unordered_map<std::string_view, std::int32_t> whole_words_;
  std::vector<std::string> word_texts_;   // what whole_words_ refers to
  std::vector<std::int32_t> characters_;  // id of each byte, or of each character of Unicode; or -1
  std::array<std::int32_t, 256> byte_tokens_{};  // ids of <0x00> to <0xFF>, or -1
  PairTable merges_{0};
};

}  // namespace trireme
