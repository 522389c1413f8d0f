#include "io/tokens/vocabulary_files.h"

#include <algorithm>

#include "io/tokens/byte_level_files.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr const char* kEndOfText = "<|endoftext|>";
constexpr const char* kPrefixOption = "add_prefix_space";
constexpr std::string_view kPatternOfGpt2 = "gpt2";

// Returns the option of a tokenizer_config.json, or null.
json option_of(const json& config, const char* name) {
  return config.is_object() && config.contains(name) ? config[name] : json();
}

// Returns which of training_patterns() cuts the text of a class of transformers into words.
std::string_view pattern_of(const json& config) {
  const json name = option_of(config, "tokenizer_class");
  if (name.is_null() || name == "GPT2Tokenizer" || name == "GPT2TokenizerFast") {
    return kPatternOfGpt2;
  }
  if (name == "Qwen2Tokenizer" || name == "Qwen2TokenizerFast") {
    return "qwen2";
  }
  throw DataError(fmt::format(
      "tokenizer_config.json says that the class of this tokenizer is {}: beside a merges.txt, "
      "GPT2Tokenizer and Qwen2Tokenizer are supported. Give a tokenizer.json instead",
      printable(name.dump())));
}

json parsed_vocabulary(std::string_view text) {
  json vocab = parse_json(text);
  if (!vocab.is_object()) {
    throw DataError("it is not an object of tokens and their ids");
  }
  for (const auto& [token, id] : vocab.items()) {
    if (!id.is_number_unsigned()) {
      throw DataError(fmt::format("the token '{}' has the id {}, not a whole number",
                                  printable(token), printable(id.dump())));
    }
  }
  return vocab;
}

json merges_in(std::string_view text) {
  json pairs = json::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty() && !(at == 0 && line.starts_with("#version"))) {
      pairs.push_back(line);
    }
    at = end + 1;
  }
  return pairs;
}

}  // namespace

json vocabulary_definition(std::string_view vocab, std::string_view merges, const json& config) {
  json tokens = parsed_vocabulary(vocab);
  json added = json::array();
  if (tokens.contains(kEndOfText)) {
    added.push_back({{"id", tokens[kEndOfText]},
                     {"content", kEndOfText},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  json model = {{"type", "BPE"}, {"vocab", std::move(tokens)}, {"merges", merges_in(merges)}};
  json definition = {{"added_tokens", std::move(added)},
                     {"pre_tokenizer", bytes},
                     {"post_processor", bytes},
                     {"decoder", bytes},
                     {"model", std::move(model)}};
  if (config.is_object() && flag_or(config, kPrefixOption, false)) {
    throw DataError(fmt::format(
        "tokenizer_config.json has {}: GPT2Tokenizer puts a blank in front of a text then, "
        "GPT2TokenizerFast in front of what follows an added token, too, and Qwen2Tokenizer has no "
        "such option. Give the tokenizer.json with which the model was trained",
        kPrefixOption));
  }
  if (const std::string_view pattern = pattern_of(config); pattern != kPatternOfGpt2) {
    definition["normalizer"] = {{"type", "NFC"}};
    definition["pre_tokenizer"] = byte_level_pre_tokenizer(pattern);
  }
  return definition;
}

}  // namespace trireme
