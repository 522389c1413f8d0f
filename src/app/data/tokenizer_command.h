// `trireme tokenizer` encodes and decodes text with the tokenizers of other programs
// (docs/tokenizers.md).
#pragma once

#include "src/app/command/command_line.h"

namespace trireme {

void add_tokenizer_command(CommandLine& app);

}  // namespace trireme
