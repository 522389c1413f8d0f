#include "src/train/start/tokenizer_identity.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

// IdTokenizer is a tokenizer whose texts are token ids in decimal.
class IdTokenizer final : public Tokenizer {
 public:
  explicit IdTokenizer(std::int64_t vocab) : vocab_(vocab) {}

  std::string name() const override { return "ids"; }
  std::string digest() const override { return sha256_hex(fmt::format("ids {}", vocab_)); }
  std::int64_t vocab() const override { return vocab_; }
  // No id ends a document, since the tokenizer is unknown.
  std::int32_t end_of_document() const override { return -1; }
  double bytes_per_token() const override { return 6; }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    constexpr std::string_view kSpaces = " ,\t\r\n";
    const std::size_t before = ids.size();
    for (std::size_t at = text.find_first_not_of(kSpaces); at != std::string_view::npos;
         at = text.find_first_not_of(kSpaces, at)) {
      const std::string_view word = text.substr(at, text.find_first_of(kSpaces, at) - at);
      std::int32_t id = -1;
      const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (code != std::errc() || end != word.data() + word.size() || id < 0 || id >= vocab_) {
        throw ConfigError(
            fmt::format("'{}' is not a token id: ids are numbers from 0 to {}, separated by spaces",
                        word, vocab_ - 1));
      }
      ids.push_back(id);
      at += word.size();
    }
    if (ids.size() == before) {
      throw ConfigError("a prompt of token ids needs at least one id");
    }
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      text += fmt::format(" {}", id);
    }
    return text;
  }

 private:
  std::int64_t vocab_;
};

}  // namespace

TokenizerIdentity tokenizer_of(const DatasetManifest& manifest) {
  return {manifest.tokenizer, manifest.vocab, manifest.tokenizer_digest};
}

void put_tokenizer(const TokenizerIdentity& tokenizer, nlohmann::json& extra) {
  extra["tokenizer"] = tokenizer.name;
  extra["tokenizer_vocab"] = tokenizer.vocab;
  extra["tokenizer_digest"] = tokenizer.digest;
}

void put_tokenizer_folder(const TokenizerIdentity& tokenizer, const std::filesystem::path& dataset,
                          nlohmann::json& extra) {
  if (!has_tokenizer(tokenizer)) {
    extra[kTokenizerFolderField] =
        (std::filesystem::absolute(dataset) / "tokenizer").lexically_normal().string();
  }
}

TokenizerIdentity tokenizer_from_extra(const nlohmann::json& extra) {
  TokenizerIdentity tokenizer{"bytes", 0, ""};
  if (extra.contains("tokenizer")) {
    tokenizer.name = text_field(extra, "tokenizer");
  }
  if (extra.contains("tokenizer_digest")) {
    tokenizer.digest = text_field(extra, "tokenizer_digest");
    tokenizer.vocab = count_field(extra, "tokenizer_vocab");
  }
  return tokenizer;
}

void check_tokenizer(const TokenizerIdentity& tokenizer, std::int64_t vocab) {
  if (tokenizer.digest.empty()) {
    return;
  }
  if (tokenizer.vocab < 1 || tokenizer.vocab > vocab) {
    throw DataError(fmt::format("field 'tokenizer_vocab' is {}, but model.vocab is {}",
                                tokenizer.vocab, vocab));
  }
  std::unique_ptr<Tokenizer> known;
  try {
    known = make_tokenizer(tokenizer.name);
  } catch (const ConfigError&) {
    return;  // this program does not have it
  }
  if (known->digest() == tokenizer.digest && known->vocab() != tokenizer.vocab) {
    throw DataError(fmt::format("field 'tokenizer_vocab' is {}, but the tokenizer '{}' has {} ids",
                                tokenizer.vocab, tokenizer.name, known->vocab()));
  }
}

bool same_tokenizer(const TokenizerIdentity& a, const TokenizerIdentity& b) {
  return a.digest.empty() || b.digest.empty() ? a.name == b.name : a.digest == b.digest;
}

bool is_unnamed(const TokenizerIdentity& tokenizer) {
  return tokenizer.name == "imported" && tokenizer.digest.empty();
}

bool is_of_other_program(const TokenizerIdentity& tokenizer) {
  return tokenizer.name != "bytes" && !tokenizer.digest.empty() &&
         tokenizer.digest == foreign_tokenizer_digest(tokenizer.name, tokenizer.vocab);
}

bool has_tokenizer(const TokenizerIdentity& tokenizer) {
  try {
    const auto known = make_tokenizer(tokenizer.name);
    return same_tokenizer(tokenizer, {known->name(), known->vocab(), known->digest()});
  } catch (const ConfigError&) {
    return false;
  }
}

std::string describe(const TokenizerIdentity& tokenizer) {
  return tokenizer.digest.empty() ? fmt::format("'{}'", tokenizer.name)
                                  : fmt::format("'{}' ({} ids, {:.12})", tokenizer.name,
                                                tokenizer.vocab, tokenizer.digest);
}

std::unique_ptr<Tokenizer> tokenizer_for(const TokenizerIdentity& tokenizer, std::int64_t vocab,
                                         bool ids, const std::string& way_out) {
  if (ids) {
    const bool is_known = tokenizer.vocab > 0 && tokenizer.vocab < vocab;
    return std::make_unique<IdTokenizer>(is_known ? tokenizer.vocab : vocab);
  }
  if (is_unnamed(tokenizer)) {
    throw ConfigError("the model was imported without the files of its tokenizer: " + way_out);
  }
  std::unique_ptr<Tokenizer> known;
  try {
    known = make_tokenizer(tokenizer.name);
  } catch (const ConfigError&) {
    throw ConfigError(fmt::format(
        "the model was trained on tokens of {}, a tokenizer that this program does not have: {}",
        describe(tokenizer), way_out));
  }
  if (!same_tokenizer(tokenizer, {known->name(), known->vocab(), known->digest()})) {
    throw ConfigError(fmt::format(
        "the model was trained on tokens of {}, which differs from this program's tokenizer of the "
        "same name: {}",
        describe(tokenizer), way_out));
  }
  return known;
}

}  // namespace trireme
