// Encodes a conversation and finds the tokens that training is to predict. A pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "io/chat/chat_template.h"
#include "io/data/tokenizer.h"

namespace trireme {

struct EncodedChat {
  std::vector<std::int32_t> ids;    // of the whole text
  std::vector<std::uint8_t> marks;  // [ids.size()]: 1 for the tokens of answers, otherwise 0
};

// An answer begins with the first token in which the ids differ from those of the text in front of
// it, which is what generation continues. It ends with its last special token, unless text follows
// that; white space that the template adds behind it is not marked. Throws DataError if
// the conversation is so long, and has so many answers, that to find them takes too long.
EncodedChat encode_chat(const Tokenizer& tokenizer, const RenderedChat& chat);

}  // namespace trireme
