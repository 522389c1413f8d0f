// `trireme tokenizer train` trains a byte-level BPE on texts (docs/tokenizers.md).
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

// group: the command `tokenizer`.
void add_tokenizer_train(CommandLine& group);

}  // namespace trireme
