#include "src/interchange/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "io/chat/chat_template.h"
#include "io/data/tokenizer.h"
#include "io/tokens/byte_characters.h"
#include "io/tokens/token_kind.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/interchange/gguf_merges.h"

namespace trireme {
namespace {

using nlohmann::json;

// The texts and kinds of a model's ids.
class Tokens {
 public:
  void add(std::string text, TokenKind kind) {
    if (text.empty() || text.find('\0') != std::string::npos) {
      throw DataError(
          fmt::format("the token {} is empty or has a zero byte, which llama.cpp "
                      "cannot hold",
                      texts_.size()));
    }
    if (!seen_.insert(text).second) {
      throw DataError(fmt::format("the token '{}' occurs twice", printable(text)));
    }
    texts_.push_back(std::move(text));
    kinds_.push_back(static_cast<std::int32_t>(kind));
  }
  // Adds an id that no text has.
  void add_unused() {
    std::string text = fmt::format("[PAD{}]", texts_.size());
    while (seen_.contains(text)) {
      text.insert(0, "[PAD]");
    }
    add(std::move(text), TokenKind::unused);
  }
  void store(std::map<std::string, GgufValue>& values) && {
    values["tokenizer.ggml.tokens"] = std::move(texts_);
    values["tokenizer.ggml.token_type"] = std::move(kinds_);
  }

 private:
  std::vector<std::string> texts_;
  std::vector<std::int32_t> kinds_;
  std::unordered_set<std::string> seen_;
};

TokenKind kind_of(const BpeTokenizer& tokenizer, std::int32_t id, const GgufMerges& merges) {
  if (id == merges.unknown) {
    return TokenKind::unknown;
  }
  if (const AddedToken* const added = tokenizer.added().find(id); added != nullptr) {
    return added->special ? TokenKind::control : TokenKind::user_defined;
  }
  return merges.bytes.contains(id) ? TokenKind::byte : TokenKind::normal;
}

// Returns the ids 0 to rows - 1; not all of them need to have tokens.
Tokens tokens_of(const BpeTokenizer& tokenizer, const GgufMerges& merges, std::int64_t rows) {
  Tokens tokens;
  const auto& own = tokenizer.model().tokens();
  for (std::int32_t id = 0; id < rows; ++id) {
    const bool is_used = tokenizer.added().find(id) != nullptr ||
                         (id < std::ssize(own) && own[static_cast<std::size_t>(id)]);
    is_used ? tokens.add(tokenizer.token(id), kind_of(tokenizer, id, merges)) : tokens.add_unused();
  }
  return tokens;
}

std::uint32_t unsigned_id(std::int32_t id) { return static_cast<std::uint32_t>(id); }

// Returns the id of a token that tokenizer_config.json names, or -1.
std::int32_t named_id(const BpeTokenizer& tokenizer, const json& config, const char* name) {
  if (!config.is_object() || !config.contains(name)) {
    return -1;
  }
  const json& value = config[name];
  const json& text = value.is_object() && value.contains("content") ? value["content"] : value;
  if (!text.is_string()) {
    return -1;
  }
  const auto& content = text.get_ref<const std::string&>();
  const AddedToken* const added = tokenizer.added().find(content);
  return added != nullptr ? added->id : tokenizer.model().id_of(content).value_or(-1);
}

// Adds the tokens with a meaning, and which of them stand around a text.
void add_special_ids(const BpeTokenizer& tokenizer, const json& config, bool begins,
                     GgufVocabulary& to) {
  const std::int32_t end = tokenizer.end_of_document();
  if (end < 0) {
    throw DataError("the tokenizer does not say which token ends a text");
  }
  const auto& before = tokenizer.surroundings().before();
  const auto& after = tokenizer.surroundings().after();
  if (begins && before.size() > 1) {
    to.otherwise.push_back(
        fmt::format("it puts one token in front of a text instead of {}", before.size()));
  }
  if (after.size() > 1 || (after.size() == 1 && after[0] != end)) {
    to.otherwise.emplace_back("it puts nothing after a text");
  }
  std::int32_t begin = before.empty() ? named_id(tokenizer, config, "bos_token") : before.back();
  begin = begin < 0 ? end : begin;  // what stands in front of each text in training
  auto& values = to.values;
  values["tokenizer.ggml.bos_token_id"] = unsigned_id(begin);
  values["tokenizer.ggml.add_bos_token"] = begins && !before.empty();
  if (const std::int32_t pad = named_id(tokenizer, config, "pad_token"); pad >= 0) {
    values["tokenizer.ggml.padding_token_id"] = unsigned_id(pad);
  }
}

// llama.cpp knows an end of a text, of a turn and of a message, and stops at each of them.
void add_ends(const BpeTokenizer& tokenizer, const GgufTextHabits& habits, GgufVocabulary& to) {
  const std::array keys = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  std::int32_t first = tokenizer.end_of_document();
  const bool is_end = std::ranges::find(habits.ends, first) != habits.ends.end();
  if (habits.has_no_other_ends && !is_end && !habits.ends.empty()) {
    first = habits.ends.front();
  } else if (habits.has_no_other_ends && !is_end) {
    to.otherwise.push_back(
        fmt::format("it stops at the token {}, at which the model's files end no text", first));
  }
  const auto& after = tokenizer.surroundings().after();
  to.values["tokenizer.ggml.eos_token_id"] = unsigned_id(first);
  to.values["tokenizer.ggml.add_eos_token"] = after.size() == 1 && after[0] == first;
  std::size_t used = 0;
  for (const std::int32_t id : habits.ends) {
    if (id == first) {
      continue;
    }
    if (used < keys.size()) {
      to.values[keys[used++]] = unsigned_id(id);
    } else {
      to.otherwise.push_back(fmt::format("it may not stop at the token {}", id));
    }
  }
}

void add_chat_template(const TokenizerFiles& files, GgufVocabulary& to) {
  try {
    std::string text =
        files.chat_template.empty() ? chat_template_of(files.config) : files.chat_template;
    if (!text.empty()) {
      to.values["tokenizer.chat_template"] = std::move(text);
      to.summary += ", with a chat template";
    }
  } catch (const DataError& error) {
    to.otherwise.push_back(fmt::format("it has no chat template: {}", error.what()));
  }
}

void add_differences(const BpeTokenizer& tokenizer, const GgufMerges& merges, GgufVocabulary& to) {
  to.otherwise.insert(to.otherwise.end(), merges.otherwise.begin(), merges.otherwise.end());
  for (const AddedToken& added : tokenizer.added().all()) {
    if (added.lstrip || added.rstrip || added.single_word) {
      to.otherwise.push_back(
          fmt::format("it finds the token '{}' by its text alone", printable(added.content)));
      return;
    }
  }
}

}  // namespace

GgufVocabulary no_gguf_vocabulary(std::string why) {
  GgufVocabulary vocabulary;
  vocabulary.values["tokenizer.ggml.model"] = std::string("none");
  vocabulary.missing = std::move(why);
  return vocabulary;
}

GgufVocabulary gguf_vocabulary(const TokenizerFiles& files, std::int64_t rows,
                               const GgufTextHabits& habits) {
  GgufVocabulary vocabulary;
  auto& values = vocabulary.values;
  try {
    const BpeTokenizer tokenizer(files.definition, files.end_token);
    GgufMerges merges = gguf_merges(files.definition, tokenizer, rows);
    tokens_of(tokenizer, merges, rows).store(values);
    values["tokenizer.ggml.model"] = merges.model;
    values["tokenizer.ggml.pre"] = merges.pre;
    vocabulary.summary =
        fmt::format("{} tokens as {} ({})", tokenizer.vocab(), merges.model, merges.pre);
    if (merges.scores.empty()) {
      values["tokenizer.ggml.merges"] = merges.merges;
    } else {
      values["tokenizer.ggml.scores"] = merges.scores;
      values["tokenizer.ggml.add_space_prefix"] = merges.adds_blank;
      if (merges.unknown >= 0) {
        values["tokenizer.ggml.unknown_token_id"] = unsigned_id(merges.unknown);
      }
    }
    add_special_ids(tokenizer, files.config, habits.begins, vocabulary);
    add_ends(tokenizer, habits, vocabulary);
    add_chat_template(files, vocabulary);
    add_differences(tokenizer, merges, vocabulary);
  } catch (const Error& error) {
    return no_gguf_vocabulary(error.what());
  }
  return vocabulary;
}

GgufVocabulary gguf_byte_vocabulary(std::int64_t rows) {
  const std::unique_ptr<Tokenizer> bytes = make_tokenizer("bytes");
  const std::int32_t end = bytes->end_of_document();
  if (rows <= end) {
    return no_gguf_vocabulary(
        fmt::format("the tokenizer bytes has {} ids, but the model only {}", bytes->vocab(), rows));
  }
  GgufVocabulary vocabulary;
  Tokens tokens;
  for (int byte = 0; byte < end; ++byte) {
    tokens.add(to_byte_characters(std::string(1, static_cast<char>(byte))), TokenKind::normal);
  }
  tokens.add("<|endoftext|>", TokenKind::control);
  for (std::int64_t id = end + 1; id < rows; ++id) {
    tokens.add_unused();
  }
  auto& values = vocabulary.values;
  std::move(tokens).store(values);
  values["tokenizer.ggml.model"] = std::string("gpt2");
  values["tokenizer.ggml.pre"] = std::string("gpt-2");  // words do not matter without merges
  values["tokenizer.ggml.merges"] = std::vector<std::string>();
  values["tokenizer.ggml.bos_token_id"] = unsigned_id(end);
  values["tokenizer.ggml.eos_token_id"] = unsigned_id(end);
  values["tokenizer.ggml.add_bos_token"] = false;
  vocabulary.summary = "257 tokens as gpt2 (the tokenizer bytes)";
  return vocabulary;
}

}  // namespace trireme
