// BpeTokenizer is a tokenizer that files define: byte-level or SentencePiece-style BPE. Its ids and
// texts equal those of Hugging Face's tokenizers with the same tokenizer.json.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/data/tokenizer.h"
#include "io/tokens/added_tokens.h"
#include "io/tokens/bpe_model.h"
#include "io/tokens/decoder.h"
#include "io/tokens/normalizer.h"
#include "io/tokens/pre_tokenizer.h"
#include "io/tokens/token_template.h"
#include "io/tokens/word_cache.h"

namespace trireme {

class BpeTokenizer final : public Tokenizer {
 public:
  // definition: the contents of tokenizer.json. end_token: the token that ends a document; empty
  // for the first of those that well-known models use. Throws DataError for a definition that is
  // damaged or has a part that is not supported, and ConfigError for an unknown end_token.
  BpeTokenizer(const nlohmann::json& definition, const std::string& end_token);

  std::string name() const override { return "bpe"; }
  std::string digest() const override { return digest_; }
  std::int64_t vocab() const override { return vocab_; }
  std::int32_t end_of_document() const override { return end_; }
  bool is_special(std::int32_t id) const override {
    const AddedToken* token = added_.find(id);
    return token != nullptr && token->special;
  }
  std::vector<std::int32_t> before_text() const override { return template_.before(); }
  double bytes_per_token() const override { return 4; }
  // Bytes that are not UTF-8 are read as U+FFFD. The text of an added token becomes that token.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  // Special tokens decode to nothing.
  std::string decode(std::span<const std::int32_t> ids) const override {
    return decode(ids, false);
  }
  // Tokens that are single bytes, as <0x41>, get their text when the run of them has ended.
  std::size_t settled(std::span<const std::int32_t> ids) const override;

  std::string decode(std::span<const std::int32_t> ids, bool keeps_special) const;
  // Returns the text of a token as the files write it. Throws DataError for an unknown id.
  const std::string& token(std::int32_t id) const;
  const TokenTemplate& surroundings() const { return template_; }
  const AddedTokens& added() const { return added_; }
  const BpeModel& model() const { return model_; }

 private:
  class Words;
  class CacheLoan;
  bool is_left_out(std::int32_t id) const { return id == end_ || is_special(id); }
  void encode_text(std::string_view text, bool starts_text, Words& words) const;

  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  AddedTokens added_;
  TokenTemplate template_;
  TokenDecoder decoder_;
  std::string digest_;
  std::int64_t vocab_ = 0;
  std::int32_t end_ = -1;
  // Caches that no call uses at the moment: one per thread that encodes at the same time.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<WordCache>> caches_;
};

}  // namespace trireme
