#include "io/tokens/tokenizer_files.h"

#include <algorithm>
#include <array>

#include "io/tokens/added_token_files.h"
#include "io/tokens/sentencepiece.h"
#include "io/tokens/template_options.h"
#include "io/tokens/vocabulary_files.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kTokenizerClass = "tokenizer_class";
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

json special_tokens_map(const fs::path& folder) {
  return read_optional_json(folder / "special_tokens_map.json");
}

// Adds the tokens that files beside a model or a vocabulary list.
void add_listed_tokens(const fs::path& folder, const AddedTokenFiles& added,
                       TokenizerFiles& files) {
  if (const std::string source = added.source(); !source.empty()) {
    naming(folder / source, [&] {
      add_tokens_of_files(added, files.definition, files.end_token);
      return true;
    });
  }
}

// Adds what the files beside a SentencePiece model say: tokens, and where blanks are put.
void add_files_beside_model(const fs::path& folder, TokenizerFiles& files) {
  AddedTokenFiles added{.config = files.config,
                        .added = read_optional_json(folder / "added_tokens.json"),
                        .special = {}};
  if (!added.source().empty()) {
    added.special = special_tokens_map(folder);
    add_listed_tokens(folder, added, files);
  }
  naming(folder / "tokenizer_config.json", [&] {
    follow_blank_options(files.config, files.definition);
    return true;
  });
}

// Adds the tokens that the files beside a vocabulary list, and those of the vocabulary that they
// name.
void add_files_beside_vocabulary(const fs::path& folder, TokenizerFiles& files) {
  const AddedTokenFiles added{.config = files.config,
                              .added = read_optional_json(folder / "added_tokens.json"),
                              .special = special_tokens_map(folder)};
  add_listed_tokens(folder, added, files);
  naming(folder, [&] {
    add_named_tokens(added, files.definition, files.end_token);
    return true;
  });
}

void follow_template_options(const fs::path& folder, const json& config, TokenizerForm form,
                             json& definition) {
  naming(folder / "tokenizer_config.json", [&] {
    follow_template_options(config, form, definition);
    return true;
  });
}

// transformers takes the class from the model's configuration where tokenizer_config.json has none.
json with_class_of_model(const fs::path& folder, json config) {
  if (config.is_object() && config.contains(kTokenizerClass)) {
    return config;
  }
  const json model = read_optional_json(folder / "config.json");
  if (model.is_object() && model.value("model_type", json()) == "qwen2") {
    config[kTokenizerClass] = "Qwen2Tokenizer";
  }
  return config;
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
    add_files_beside_model(file.parent_path(), files);
    follow_template_options(file.parent_path(), files.config, TokenizerForm::sentencepiece,
                            files.definition);
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
    const json config = with_class_of_model(file.parent_path(), files.config);
    files.definition = naming(file, [&] {
      return vocabulary_definition(read_file(file, kMostBytes), read_file(merges, kMostBytes),
                                   config);
    });
    add_files_beside_vocabulary(file.parent_path(), files);
    follow_template_options(file.parent_path(), config, TokenizerForm::vocabulary,
                            files.definition);
  } else {
    follow_template_options(file.parent_path(), files.config, TokenizerForm::tokenizer_json,
                            files.definition);
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
  json config = {{kTokenizerClass, "PreTrainedTokenizerFast"},
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
