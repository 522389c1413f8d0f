// What a token of a vocabulary is. The numbers are those of sentencepiece_model.proto
// (ModelProto.SentencePiece.Type), which tokenizer.ggml.token_type of GGUF has taken over.
#pragma once

#include <cstdint>

namespace trireme {

enum class TokenKind : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,  // no text, such as <s>
  user_defined = 4,
  unused = 5,
  byte = 6  // of a character without a token, such as <0x41>
};

}  // namespace trireme
