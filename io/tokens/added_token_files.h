// The tokens that transformers adds to the vocabulary of a SentencePiece model, in files beside it:
// "added_tokens_decoder" in tokenizer_config.json or, if that has none, added_tokens.json. The
// rules are those of transformers' tokenizer LlamaTokenizer
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

// Adds them to the definition of a SentencePiece model, from sentencepiece_definition(), and sets
// end_token to the token that the files name, if they do. Changes nothing if there are none. Throws
// DataError, which names the token, if an id does not continue the vocabulary.
void add_tokens_of_files(const AddedTokenFiles& files, nlohmann::json& definition,
                         std::string& end_token);

}  // namespace trireme
