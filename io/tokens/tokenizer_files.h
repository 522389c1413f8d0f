// Reads the files that define a tokenizer, in the forms that other programs write.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "io/tokens/bpe_tokenizer.h"

namespace trireme {

struct TokenizerFiles {
  nlohmann::json definition;  // as in tokenizer.json
  std::string end_token;      // of tokenizer_config.json; empty if there is none
  nlohmann::json config;      // tokenizer_config.json; null if there is none
  std::string chat_template;  // chat_template.jinja beside it; empty if there is none
};

// Returns whether a folder has files that define a tokenizer.
bool holds_tokenizer(const std::filesystem::path& folder);

// path: a tokenizer.json; a vocab.json beside a merges.txt, as GPT-2 has them; a SentencePiece
// model, which ends in .model; or a folder with these. A tokenizer_config.json beside them may name
// the token that ends a document. Beside a vocab.json or a model, that file, added_tokens.json
// and special_tokens_map.json may add tokens. Throws NotFound, and a DataError that names the file.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& path);

// Opens the tokenizer of these files. end_token: if not empty, the token that ends a document.
std::unique_ptr<BpeTokenizer> open_tokenizer_files(const std::filesystem::path& path,
                                                   const std::string& end_token = "");

// Opens "bytes", or files. Throws ConfigError if no token ends a document.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name_or_path,
                                          const std::string& end_token = "");

// Writes the files of a tokenizer, in the form of tokenizer.json, into FOLDER/tokenizer, where
// open_tokenizer() finds the same tokenizer again. Does nothing for "bytes".
void store_tokenizer(const std::string& name_or_path, const std::string& end_token,
                     const std::filesystem::path& folder);

}  // namespace trireme
