#include "io/tokens/tokenizer_files.h"

#include <algorithm>
#include <array>

#include "io/tokens/added_token_files.h"
#include "io/tokens/sentencepiece.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

// Calls read() and adds the file's name to its DataError.
template <class Read>
auto naming(const fs::path& file, Read read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
}

json read_json(const fs::path& file) {
  return naming(file, [&] { return parse_json(read_file(file, kMostBytes)); });
}

// Returns the end-of-sequence token of a tokenizer_config.json, which is text or an object.
std::string end_token_of(const json& config, const fs::path& file) {
  if (config.is_null()) {
    return "";
  }
  return naming(file, [&]() -> std::string {
    if (!config.contains("eos_token") || config["eos_token"].is_null()) {
      return "";
    }
    const json& token = config["eos_token"];
    return token.is_object() ? text_field(token, "content") : text_field(config, "eos_token");
  });
}

// Returns null for a file that does not exist.
json read_optional_json(const fs::path& file) {
  return fs::exists(file) ? read_json(file) : json();
}

// Adds the tokens that the files beside a SentencePiece model list.
void add_tokens_beside(const fs::path& folder, TokenizerFiles& files) {
  AddedTokenFiles added{.config = files.config,
                        .added = read_optional_json(folder / "added_tokens.json"),
                        .special = {}};
  if (const std::string source = added.source(); !source.empty()) {
    added.special = read_optional_json(folder / "special_tokens_map.json");
    naming(folder / source, [&] {
      add_tokens_of_files(added, files.definition, files.end_token);
      return true;
    });
  }
}

constexpr std::array kDefinitions = {"tokenizer.json", "vocab.json", "tokenizer.model"};

fs::path file_of(const fs::path& path) {
  if (!fs::exists(path)) {
    throw NotFound(
        fmt::format("there is no tokenizer {}: give a tokenizer.json, or a folder that has one",
                    printable(path.string())));
  }
  if (!fs::is_directory(path)) {
    return path;
  }
  for (const char* name : kDefinitions) {
    if (fs::exists(path / name)) {
      return path / name;
    }
  }
  throw NotFound(fmt::format(
      "{} has no tokenizer.json, no vocab.json with a merges.txt and no tokenizer.model",
      printable(path.string())));
}

}  // namespace

bool holds_tokenizer(const fs::path& folder) {
  return std::ranges::any_of(kDefinitions,
                             [&](const char* name) { return fs::exists(folder / name); });
}

json gpt2_definition(std::string_view vocab, std::string_view merges) {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  json tokens = parse_json(vocab);
  json added = json::array();
  if (tokens.is_object() && tokens.contains("<|endoftext|>")) {
    added.push_back({{"id", tokens["<|endoftext|>"]},
                     {"content", "<|endoftext|>"},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  json pairs = json::array();
  for (std::size_t at = 0; at < merges.size();) {
    const std::size_t end = std::min(merges.find('\n', at), merges.size());
    std::string_view line = merges.substr(at, end - at);
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty() && !(at == 0 && line.starts_with("#version"))) {
      pairs.push_back(line);
    }
    at = end + 1;
  }
  json model = {{"type", "BPE"}, {"vocab", std::move(tokens)}, {"merges", std::move(pairs)}};
  return {{"added_tokens", std::move(added)},
          {"pre_tokenizer", bytes},
          {"post_processor", bytes},
          {"decoder", bytes},
          {"model", std::move(model)}};
}

TokenizerFiles read_tokenizer_files(const fs::path& path) {
  const fs::path file = file_of(path);
  const fs::path beside = file.parent_path() / "tokenizer_config.json";
  const fs::path chat = file.parent_path() / "chat_template.jinja";
  TokenizerFiles files;
  files.config = read_optional_json(beside);
  files.chat_template = fs::exists(chat) ? read_file(chat, kMostBytes) : "";
  if (file.extension() == ".model") {
    files.definition = naming(file, [&] {
      return sentencepiece_definition(read_file(file, kMostBytes), files.end_token);
    });
    add_tokens_beside(file.parent_path(), files);
    return files;
  }
  files.definition = read_json(file);
  files.end_token = end_token_of(files.config, beside);
  // A vocabulary may have a token "model".
  if (!files.definition.contains("model") || !files.definition["model"].is_object()) {
    const fs::path merges = file.parent_path() / "merges.txt";
    if (!fs::exists(merges)) {
      throw NotFound(fmt::format("{} is a vocabulary, but there is no merges.txt beside it",
                                 printable(file.string())));
    }
    files.definition = naming(file, [&] {
      return gpt2_definition(read_file(file, kMostBytes), read_file(merges, kMostBytes));
    });
  }
  return files;
}

std::unique_ptr<BpeTokenizer> open_tokenizer_files(const fs::path& path,
                                                   const std::string& end_token) {
  const TokenizerFiles files = read_tokenizer_files(path);
  return naming(path, [&] {
    return std::make_unique<BpeTokenizer>(files.definition,
                                          end_token.empty() ? files.end_token : end_token);
  });
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name_or_path,
                                          const std::string& end_token) {
  if (name_or_path == "bytes") {
    return make_tokenizer(name_or_path);
  }
  auto tokenizer = open_tokenizer_files(name_or_path, end_token);
  if (tokenizer->end_of_document() < 0) {
    throw ConfigError(
        fmt::format("{} does not say which token ends a document: name it with --end-of-document",
                    printable(name_or_path)));
  }
  return tokenizer;
}

void store_tokenizer(const std::string& name_or_path, const std::string& end_token,
                     const fs::path& folder) {
  if (name_or_path == "bytes") {
    return;
  }
  const TokenizerFiles files = read_tokenizer_files(name_or_path);
  const BpeTokenizer tokenizer(files.definition, end_token.empty() ? files.end_token : end_token);
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"eos_token", tokenizer.token(tokenizer.end_of_document())}};
  for (const char* name : {"bos_token", "unk_token", "pad_token", "chat_template"}) {
    if (files.config.is_object() && files.config.contains(name)) {
      config[name] = files.config[name];
    }
  }
  const fs::path to = folder / "tokenizer";
  make_directories(to);
  write_file_durably(to / "tokenizer.json", files.definition.dump() + "\n");
  write_file_durably(to / "tokenizer_config.json", config.dump(1) + "\n");
  if (!files.chat_template.empty()) {
    write_file_durably(to / "chat_template.jinja", files.chat_template);
  }
}

}  // namespace trireme
