#include "io/tokens/byte_level_files.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/tokens/split_patterns.h"
#include "src/base/check.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::string_view kGpt2 = "gpt2";

json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

}  // namespace

const std::vector<std::string>& training_patterns() {
  static const std::vector<std::string> names = {"gpt2", "llama3", "qwen2"};
  return names;
}

json byte_level_pre_tokenizer(std::string_view pattern) {
  if (pattern == kGpt2) {
    return byte_level(true);
  }
  const std::string_view regex = regex_named(pattern);
  check(!regex.empty(), "the pattern has a name");
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"},
             {"pattern", {{"Regex", regex}}},
             {"behavior", "Isolated"},
             {"invert", false}},
            byte_level(false)}}};
}

json byte_level_definition(const TrainedBpe& trained, const std::vector<std::string>& special,
                           std::string_view pattern) {
  json added = json::array();
  json vocab = json::object();
  for (std::size_t id = 0; id < trained.tokens.size(); ++id) {
    vocab[trained.tokens[id]] = id;
  }
  for (const std::string& token : special) {
    added.push_back({{"id", vocab.at(token)},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  json merges = json::array();
  for (const auto& [a, b] : trained.merges) {
    merges.push_back(
        {trained.tokens[static_cast<std::size_t>(a)], trained.tokens[static_cast<std::size_t>(b)]});
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level_pre_tokenizer(pattern)},
          {"post_processor", byte_level(true)},
          {"decoder", byte_level(true)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", std::move(vocab)},
            {"merges", std::move(merges)}}}};
}

}  // namespace trireme
