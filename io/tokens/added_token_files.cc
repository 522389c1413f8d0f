#include "io/tokens/added_token_files.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_set>

#include "io/tokens/bpe_model.h"
#include "io/tokens/text_step.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr const char* kDecoder = "added_tokens_decoder";
constexpr const char* kEndToken = "eos_token";
constexpr std::array kSpecialNames = {"bos_token", kEndToken,   "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"};
constexpr std::int64_t kMostId = (std::int64_t{1} << 24) - 1;
constexpr const char* kAddsPrefix = "add_prefix_space";
constexpr const char* kMoreSpecial = "additional_special_tokens";

bool has(const json& object, const char* name) {
  return object.is_object() && object.contains(name) && !object[name].is_null();
}

// Returns the text of a token, which is given as text or as an object.
std::string content_of(const json& token, const char* name) {
  if (token.is_object()) {
    return text_field(token, "content");
  }
  if (!token.is_string()) {
    throw DataError(fmt::format("field '{}' is neither a token nor an object with one", name));
  }
  return token;
}

// The texts of the tokens that the files name for some purpose.
std::unordered_set<std::string> special_texts(const AddedTokenFiles& files) {
  std::unordered_set<std::string> texts;
  for (const json* file : {&files.config, &files.special}) {
    for (const char* name : kSpecialNames) {
      if (has(*file, name)) {
        texts.insert(content_of((*file)[name], name));
      }
    }
    if (has(*file, kMoreSpecial)) {
      for (const json& token : array_field(*file, kMoreSpecial)) {
        texts.insert(content_of(token, kMoreSpecial));
      }
    }
  }
  return texts;
}

struct ListedToken {
  std::string content;
  bool lstrip = false;
  bool rstrip = false;
  bool special = false;
};
using ListedTokens = std::map<std::int64_t, ListedToken>;  // by id

ListedToken read_listed(const json& value) {
  check_fields(value, "an added token",
               {"__type", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  if (flag_or(value, "single_word", false)) {
    throw DataError(
        fmt::format("the added token '{}' has the option single_word, which is supported in a "
                    "tokenizer.json only",
                    printable(text_field(value, "content"))));
  }
  return {.content = text_field(value, "content"),
          .lstrip = flag_or(value, "lstrip", false),
          .rstrip = flag_or(value, "rstrip", false),
          .special = flag_or(value, "special", false)};
}

std::int64_t id_in_key(const std::string& key) {
  std::int64_t id = -1;
  const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (code != std::errc() || end != key.data() + key.size() || id < 0 || id > kMostId) {
    throw DataError(fmt::format("'{}' in {} is not a token id", printable(key), kDecoder));
  }
  return id;
}

ListedTokens listed_tokens(const AddedTokenFiles& files) {
  ListedTokens listed;
  if (has(files.config, kDecoder)) {
    for (const auto& [key, value] : object_field(files.config, kDecoder).items()) {
      if (!listed.emplace(id_in_key(key), read_listed(value)).second) {
        throw DataError(fmt::format("{} has the id {} twice", kDecoder, printable(key)));
      }
    }
    return listed;
  }
  if (!files.added.is_object()) {
    throw DataError("it is not an object of tokens and their ids");
  }
  for (const auto& [content, value] : files.added.items()) {
    if (!value.is_number_unsigned() || value > kMostId) {
      throw DataError(fmt::format("the added token '{}' has the id {}, not a whole number up to {}",
                                  printable(content), printable(value.dump()), kMostId));
    }
    const auto id = value.get<std::int64_t>();
    const auto [at, is_new] = listed.emplace(id, ListedToken{.content = content});
    if (!is_new) {
      throw DataError(fmt::format("the added tokens '{}' and '{}' have the same id {}",
                                  printable(at->second.content), printable(content), id));
    }
  }
  return listed;
}

// Returns the piece that has the id, for a message.
std::string piece_at(const json& vocab, std::int64_t id) {
  for (const auto& [piece, own] : vocab.items()) {
    if (own == id) {
      return piece;
    }
  }
  return "";
}

// Throws DataError if the vocabulary has another id for the token, or another token for its id, or
// if the id is not the next one after it.
void check_id(const json& vocab, const ListedToken& token, std::int64_t id, std::int64_t next) {
  const std::string what =
      fmt::format("the added token '{}' has the id {}", printable(token.content), id);
  if (token.content.empty()) {
    throw DataError(what + " and no text");
  }
  if (const auto known = vocab.find(token.content); known != vocab.end()) {
    if (*known != id) {
      throw DataError(fmt::format("{}, but the model's vocabulary gives it {}", what,
                                  known->get<std::int64_t>()));
    }
    return;
  }
  if (id < std::ssize(vocab)) {
    throw DataError(fmt::format("{}, which is '{}' in the model's vocabulary", what,
                                printable(piece_at(vocab, id))));
  }
  if (id != next) {
    throw DataError(fmt::format(
        "{}, but the next id after the {} of the model's vocabulary and the added tokens before it "
        "is {}: added tokens without a gap are supported",
        what, std::ssize(vocab), next));
  }
}

// Without "legacy", transformers puts a blank in front of a text only, and not after each added
// token, too. Its converter says so in this way.
void put_blank_in_front_only(bool prefixes, json& definition) {
  definition["normalizer"] = nullptr;
  definition["pre_tokenizer"] = {{"type", "Metaspace"},
                                 {"replacement", kBlankMark},
                                 {"prepend_scheme", prefixes ? "first" : "never"},
                                 {"split", false}};
  json& steps = definition["decoder"]["decoders"];
  const bool strips = steps.back()["type"] == "Strip";
  if (prefixes && !strips) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}});
  } else if (!prefixes && strips) {
    steps.erase(steps.size() - 1);
  }
}

json added_token(std::uint64_t id, const ListedToken& token) {
  return {{"id", id},
          {"content", token.content},
          {"single_word", false},
          {"lstrip", token.lstrip},
          {"rstrip", token.rstrip},
          {"normalized", false},
          {"special", token.special}};
}

// Returns the list of the definition with the options of the tokens that it has already, and with
// the others after them.
json joined(const json& own, ListedTokens listed, const std::unordered_set<std::string>& special) {
  json all = json::array();
  for (json token : own) {
    const auto found = listed.find(token["id"].get<std::int64_t>());
    if (found != listed.end()) {
      token["lstrip"] = found->second.lstrip;
      token["rstrip"] = found->second.rstrip;
      token["special"] = token["special"] == true || found->second.special ||
                         special.contains(found->second.content);
      listed.erase(found);
    }
    all.push_back(std::move(token));
  }
  for (const auto& [id, token] : listed) {
    all.push_back(added_token(static_cast<std::uint64_t>(id), token));
    all.back()["special"] = token.special || special.contains(token.content);
  }
  return all;
}

}  // namespace

std::string AddedTokenFiles::source() const {
  return has(config, kDecoder) ? "tokenizer_config.json"
         : !added.is_null()    ? "added_tokens.json"
                               : "";
}

void add_tokens_of_files(const AddedTokenFiles& files, json& definition, std::string& end_token) {
  if (files.source().empty()) {
    return;
  }
  const json& vocab = definition["model"]["vocab"];
  ListedTokens listed = listed_tokens(files);
  std::unordered_set<std::string> texts;
  std::int64_t next = std::ssize(vocab);
  for (const auto& [id, token] : listed) {
    check_id(vocab, token, id, next);
    next += id == next ? 1 : 0;
    if (!texts.insert(token.content).second) {
      throw DataError(fmt::format("the added token '{}' occurs twice", printable(token.content)));
    }
  }
  if (has(files.config, kEndToken)) {
    const std::string end = content_of(files.config[kEndToken], kEndToken);
    end_token = vocab.contains(end) || texts.contains(end) ? end : end_token;
  }
  definition["added_tokens"] =
      joined(definition["added_tokens"], std::move(listed), special_texts(files));
}

void add_named_tokens(const AddedTokenFiles& files, json& definition, std::string& end_token) {
  json& added = definition["added_tokens"];
  const json& vocab = definition["model"]["vocab"];
  std::unordered_set<std::string> known;
  for (const json& token : added) {
    known.insert(token["content"].get<std::string>());
  }
  const bool has_decoder = has(files.config, kDecoder);
  const AddedTokenFiles counting{
      .config = files.config, .added = {}, .special = has_decoder ? json() : files.special};
  const std::unordered_set<std::string> named = special_texts(counting);
  for (const std::string& text : std::set<std::string>(named.begin(), named.end())) {
    if (const auto at = vocab.find(text); at != vocab.end() && !known.contains(text)) {
      added.push_back(added_token(at->get<std::uint64_t>(), {.content = text, .special = true}));
      known.insert(text);
    }
  }
  for (const json* file : {&counting.config, &counting.special}) {
    if (has(*file, kEndToken)) {
      const std::string end = content_of((*file)[kEndToken], kEndToken);
      end_token = known.contains(end) ? end : end_token;
    }
  }
}

void follow_blank_options(const json& config, json& definition) {
  if (!config.is_object()) {
    return;
  }
  // null is not the default here: transformers takes it for false.
  const bool prefixes = !config.contains(kAddsPrefix) || flag_or(config, kAddsPrefix, false);
  if (!flag_or(config, "legacy", true)) {
    put_blank_in_front_only(prefixes, definition);
    return;
  }
  const json& first = definition["normalizer"]["normalizers"].front();
  if (!prefixes && first["type"] == "Prepend") {
    throw DataError(fmt::format(
        "{} is {} without \"legacy\": false: transformers' LlamaTokenizer puts a blank in front of "
        "a text then, and LlamaTokenizerFast does not. Give the tokenizer.json with which the "
        "model was trained, or set one of the two fields",
        kAddsPrefix, config[kAddsPrefix].dump()));
  }
}

}  // namespace trireme
