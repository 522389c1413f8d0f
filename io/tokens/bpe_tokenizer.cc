#include "io/tokens/bpe_tokenizer.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "io/tokens/text_step.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;

// Tokens that end a document in well-known models.
constexpr std::string_view kEndTokens[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                           "<|im_end|>"};

const json& part(const json& definition, const char* name) {
  static const json none;
  return definition.contains(name) ? definition[name] : none;
}

const json& checked(const json& definition) {
  check_fields(definition, "tokenizer.json",
               {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                "post_processor", "decoder", "model"});
  for (const char* name : {"truncation", "padding"}) {
    if (!part(definition, name).is_null()) {
      throw DataError(
          fmt::format("tokenizer.json has '{}', which is not supported: set it to null", name));
    }
  }
  return definition;
}

const json& added_list(const json& definition) {
  static const json empty = json::array();
  return part(definition, "added_tokens").is_null() ? empty
                                                    : array_field(definition, "added_tokens");
}

// Returns a definition in one form: merges as pairs, and no options that are null or false.
std::string canonical(json definition) {
  for (const char* name : {"version", "truncation", "padding"}) {
    definition.erase(name);
  }
  json& model = definition["model"];
  for (auto at = model.begin(); at != model.end();) {
    at = at->is_null() || *at == false ? model.erase(at) : std::next(at);
  }
  model["type"] = "BPE";
  for (json& merge : model["merges"]) {
    if (merge.is_string()) {
      const std::string text = merge;
      const std::size_t blank = text.find(' ');
      merge = {text.substr(0, blank), text.substr(blank + 1)};
    }
  }
  return definition.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

// Lends a cache to one call.
class BpeTokenizer::CacheLoan {
 public:
  explicit CacheLoan(const BpeTokenizer& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (!owner_.caches_.empty()) {
      cache_ = std::move(owner_.caches_.back());
      owner_.caches_.pop_back();
    }
  }
  ~CacheLoan() {
    if (cache_) {
      const std::lock_guard lock(owner_.mutex_);
      owner_.caches_.push_back(std::move(cache_));
    }
  }
  CacheLoan(const CacheLoan&) = delete;
  CacheLoan& operator=(const CacheLoan&) = delete;
  WordCache& operator*() {
    if (!cache_) {
      cache_ = std::make_unique<WordCache>();
    }
    return *cache_;
  }

 private:
  const BpeTokenizer& owner_;
  std::unique_ptr<WordCache> cache_;
};

// Encodes the words that the pre-tokenizer cuts. A few words wait while the cache's places for them
// are loaded; finish() encodes the last of them.
class BpeTokenizer::Words final : public PartSink {
 public:
  Words(const BpeModel& model, WordCache& cache, std::vector<std::int32_t>& ids)
      : model_(model), cache_(cache), ids_(ids) {}

  void take(const TextPart& word) override {
    if (!model_.may_cut_at_marks()) {
      encode(word.text);
      return;
    }
    std::size_t begin = 0;
    for (std::size_t at = word.text.find(kBlankMark); at != std::string_view::npos;
         at = word.text.find(kBlankMark, at)) {
      if (at > begin) {
        encode(word.text.substr(begin, at - begin));
      }
      begin = at;
      while (word.text.substr(at).starts_with(kBlankMark)) {
        at += kBlankMark.size();
      }
    }
    encode(word.text.substr(begin));
  }
  // Names the text that the next words are parts of, as far as they are not in other memory.
  void set_text(std::string_view text) { text_ = text; }
  void append(std::int32_t id) {
    finish();
    ids_.push_back(id);
  }
  void finish() {
    for (; done_ < taken_; ++done_) {
      encode(waiting_[done_ % kWaiting]);
    }
  }

 private:
  static constexpr std::size_t kWaiting = 8;

  void encode(std::string_view word) {
    if (word.empty() || word.size() > WordCache::kMostBytes) {
      finish();
      model_.encode(word, ids_);
      return;
    }
    if (taken_ - done_ == kWaiting) {
      encode(waiting_[done_ % kWaiting]);
      ++done_;
    }
    WordCache::Key& key = waiting_[taken_ % kWaiting];
    const bool has_room = word.data() >= text_.data() &&
                          word.data() + WordCache::kMostBytes < text_.data() + text_.size();
    key = has_room ? WordCache::key_in_text(word) : WordCache::key_of(word);
    cache_.prefetch(key);
    ++taken_;
  }
  void encode(const WordCache::Key& key) {
    if (const auto known = cache_.find(key); !known.empty()) {
      ids_.insert(ids_.end(), known.begin(), known.end());
      return;
    }
    const std::size_t before = ids_.size();
    model_.encode(key.text(), ids_);
    cache_.put(key, std::span(ids_).subspan(before));
  }

  const BpeModel& model_;
  WordCache& cache_;
  std::vector<std::int32_t>& ids_;
  std::string_view text_;
  std::array<WordCache::Key, kWaiting> waiting_;
  std::size_t taken_ = 0;
  std::size_t done_ = 0;
};

BpeTokenizer::BpeTokenizer(const json& definition, const std::string& end_token)
    : normalizer_(part(checked(definition), "normalizer")),
      pre_tokenizer_(part(definition, "pre_tokenizer")),
      model_(object_field(definition, "model"), pre_tokenizer_.makes_bytes()),
      added_(added_list(definition), model_, normalizer_),
      template_(part(definition, "post_processor")),
      decoder_(part(definition, "decoder")),
      vocab_(static_cast<std::int64_t>(model_.tokens().size())) {
  for (const AddedToken& added : added_.all()) {
    vocab_ = std::max(vocab_, std::int64_t{added.id} + 1);
  }
  const auto find = [&](std::string_view text) {
    const AddedToken* const added = added_.find(text);
    return added != nullptr ? added->id : model_.id_of(text).value_or(-1);
  };
  if (!end_token.empty()) {
    end_ = find(end_token);
    if (end_ < 0) {
      throw ConfigError(
          fmt::format("the tokenizer has no token '{}' to end a document", printable(end_token)));
    }
  }
  for (const std::string_view text : kEndTokens) {
    end_ = end_ < 0 ? find(text) : end_;
  }
  for (const auto* ids : {&template_.before(), &template_.after()}) {
    for (const std::int32_t id : *ids) {
      (void)token(id);
    }
  }
  digest_ = sha256_hex(
      fmt::format("trireme tokenizer: bpe, version 1: end {}\n{}", end_, canonical(definition)));
}

void BpeTokenizer::encode_text(std::string_view text, bool starts_text, Words& words) const {
  std::string changed;
  if (!normalizer_.changes_nothing()) {
    changed = normalizer_.apply(text);
    text = changed;
  }
  words.set_text(text);
  for (const TokenSpan& span : added_.cut_normalized(text)) {
    if (span.id >= 0) {
      words.append(span.id);
    } else {
      pre_tokenizer_.split({span.text, false, starts_text && span.text.data() == text.data()},
                           words);
    }
  }
}

void BpeTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::string repaired;
  if (!is_utf8(text)) {
    repaired = with_replacements(text);
    text = repaired;
  }
  CacheLoan cache(*this);
  Words words(model_, *cache, ids);
  for (const TokenSpan& span : added_.cut_raw(text)) {
    if (span.id >= 0) {
      words.append(span.id);
    } else {
      encode_text(span.text, span.text.data() == text.data(), words);
    }
  }
  words.finish();
}

const std::string& BpeTokenizer::token(std::int32_t id) const {
  if (const AddedToken* const added = added_.find(id); added != nullptr) {
    return added->content;
  }
  const auto at = static_cast<std::size_t>(id);
  if (id < 0 || at >= model_.tokens().size() || !model_.tokens()[at]) {
    throw DataError(fmt::format("token {} is not one of the {} ids of the tokenizer", id, vocab_));
  }
  return *model_.tokens()[at];
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> ids, bool keeps_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (keeps_special || !is_left_out(id)) {
      tokens.push_back(token(id));
    }
  }
  return decoder_.decode(std::move(tokens));
}

std::size_t BpeTokenizer::settled(std::span<const std::int32_t> ids) const {
  if (decoder_.rewrites_text()) {
    return 0;
  }
  std::size_t count = ids.size();
  if (decoder_.joins_bytes()) {
    // A token that is left out does not end a run.
    while (count > 0 && (is_left_out(ids[count - 1]) || is_byte_token(token(ids[count - 1])))) {
      --count;
    }
  }
  return count;
}

}  // namespace trireme
