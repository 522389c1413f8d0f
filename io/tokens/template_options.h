// The options of a tokenizer_config.json that say how transformers treats special tokens:
// `add_bos_token` and `add_eos_token`, which put tokens around a text, and `split_special_tokens`.
// Pure functions.
#pragma once

#include <nlohmann/json.hpp>

namespace trireme {

// From which files a definition was made.
enum class TokenizerForm { tokenizer_json, vocabulary, sentencepiece };

// Gives the definition (as in tokenizer.json) the template that the class of the tokenizer makes of
// the options, where it makes one: LlamaTokenizer and GemmaTokenizer always, GPT2Tokenizer of a
// vocab.json. Changes nothing if the template is the same, or if the token is not known. config:
// null if there is none, which counts as that of a LlamaTokenizer for SentencePiece. Throws
// DataError for options of another type, and for `split_special_tokens`, with which texts such as
// <|endoftext|> are no tokens.
void follow_template_options(const nlohmann::json& config, TokenizerForm form,
                             nlohmann::json& definition);

}  // namespace trireme
