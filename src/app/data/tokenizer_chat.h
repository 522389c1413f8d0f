// `trireme tokenizer chat` shows how a chat template writes conversations (docs/tokenizers.md).
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

// group: the command `tokenizer`.
void add_tokenizer_chat(CommandLine& group);

}  // namespace trireme
