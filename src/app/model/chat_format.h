// ChatFormat says how a conversation becomes the prompt of an answer, and where the answer ends: by
// plain marks before each message, or as the chat template of a tokenizer says.
#pragma once

#include <string>
#include <vector>

#include "io/chat/chat_template.h"
#include "src/app/model/chat_history.h"

namespace trireme {

struct ChatFormat {
  ChatRendering rendering;
  std::vector<std::string> stops;  // texts at which an answer ends
  bool ends_at_special = false;    // whether it also ends at every special token
};

ChatFormat format_of(const ChatMarks& marks);
// An answer ends at special tokens, or at what the template writes after answers.
ChatFormat format_of(const ChatTemplate& chat_template);

}  // namespace trireme
