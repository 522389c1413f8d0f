// Reads the .model files of SentencePiece: a protocol buffer with pieces, their scores and
// settings.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Makes the definition of tokenizer.json from the contents of a .model file, as Hugging Face's
// converter for Llama does. end_token is set to the piece that ends a text, if there is one. Reads
// models of the type BPE without rules of normalization; throws DataError for others and for
// damaged files.
nlohmann::json sentencepiece_definition(std::string_view model, std::string& end_token);

}  // namespace trireme
