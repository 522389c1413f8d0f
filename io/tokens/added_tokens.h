// Tokens that are found in the text before it is cut: the "added_tokens" of tokenizer.json, such as
// <|endoftext|>. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/tokens/bpe_model.h"
#include "io/tokens/normalizer.h"

namespace trireme {

struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space in front of it
  bool rstrip = false;
  bool normalized = false;  // looked for in normalized text
  bool special = false;     // left out of decoded text
};

// A part of a text: an added token, or text between them.
struct TokenSpan {
  std::string_view text;
  std::int32_t id;  // -1 = text
};

class AddedTokens {
 public:
  // Throws DataError for ids that contradict the model's vocabulary.
  AddedTokens(const nlohmann::json& list, const BpeModel& model, const TextNormalizer& normalizer);

  const std::vector<AddedToken>& all() const { return all_; }
  // Returns null for an id that is not one of them.
  const AddedToken* find(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;

  // Cuts text at the tokens that are looked for in text as it is, or in normalized text.
  std::vector<TokenSpan> cut_raw(std::string_view text) const { return raw_.cut(text, all_); }
  std::vector<TokenSpan> cut_normalized(std::string_view text) const {
    return normalized_.cut(text, all_);
  }

 private:
  // Finds the leftmost, and there the longest, of several texts.
  class Finder {
   public:
    void add(std::string text, std::size_t token);
    void finish();
    std::vector<TokenSpan> cut(std::string_view text, const std::vector<AddedToken>& all) const;

   private:
    struct Entry {
      std::string text;
      std::size_t token;  // index of the token in all_
    };
    // Returns the first byte from `at` on with which an entry begins, or the end.
    std::size_t candidate(std::string_view text, std::size_t at) const;
    // Returns the longest entry that starts at `at`, or null.
    const Entry* match(std::string_view text, std::size_t at) const;

    std::vector<Entry> entries_;
    std::vector<std::vector<std::size_t>> by_first_byte_;  // indices into entries_, longest first
    std::array<bool, 256> begins_{};                       // whether an entry begins with the byte
    std::optional<char> only_first_;                       // the byte, if all begin with it
  };

  std::vector<AddedToken> all_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  Finder raw_;
  Finder normalized_;
};

}  // namespace trireme
