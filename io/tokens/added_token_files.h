// The tokens that transformers adds to the vocabulary of a SentencePiece model, or to a vocab.json,
// in files beside it: "added_tokens_decoder" in tokenizer_config.json or, if that has none,
// added_tokens.json. The rules are those of transformers' own tokenizers, such as LlamaTokenizer
// (docs/decisions/0082-added-tokens-beside-a-model.md). Pure functions.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace trireme {

struct AddedTokenFiles {
  nlohmann::json config;   // tokenizer_config.json; null if there is none
  nlohmann::json added;    // added_tokens.json; null if there is none
  nlohmann::json special;  // special_tokens_map.json; null if there is none

  // Returns the name of the file that has the tokens; "" if there are none.
  std::string source() const;
};

// Adds them to the definition that sentencepiece_definition() or vocabulary_definition() has made,
// and sets end_token to the token that the files name, if they do. Changes nothing if there are
// none. Throws DataError, which names the token, if an id does not continue the vocabulary.
void add_tokens_of_files(const AddedTokenFiles& files, nlohmann::json& definition,
                         std::string& end_token);

// Makes added tokens of the tokens of a vocab.json that the files name for some purpose, so that
// they are found in text, and sets end_token to the one that ends a document, if the files name it.
// If tokenizer_config.json has "added_tokens_decoder", special_tokens_map.json is ignored;
// otherwise its names go before those of tokenizer_config.json. Throws DataError.
void add_named_tokens(const AddedTokenFiles& files, nlohmann::json& definition,
                      std::string& end_token);

// Applies `legacy` and `add_prefix_space` of tokenizer_config.json, which say where a blank is put,
// to the definition of a SentencePiece model. config: null if there is no such file. Throws
// DataError where transformers' two tokenizers contradict each other.
void follow_blank_options(const nlohmann::json& config, nlohmann::json& definition);

}  // namespace trireme
