// ChatHistory holds the messages of a conversation and turns them into the prompt for the next
// answer, as many of them as fit into the model's context. Borrows the tokenizer; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/data/tokenizer.h"

namespace trireme {

struct ChatTurn {
  std::string role;  // "system", "user" or "assistant"
  std::string text;  // valid UTF-8
};

// Returns the text of a conversation, which ends where the assistant is to begin.
using ChatRendering = std::function<std::string(const std::vector<ChatTurn>&)>;

// Marks the speakers of a conversation with plain text:
//
//   SYSTEM END  USER message END  ASSISTANT answer END  USER message END  ASSISTANT
struct ChatMarks {
  std::string user = "User: ";
  std::string assistant = "Assistant: ";
  std::string end = "\n";

  std::string text(const std::vector<ChatTurn>& turns) const;
  // Returns the text with which the next message of the user would begin: an answer ends there.
  std::string stop() const;
};

struct ChatPrompt {
  std::vector<std::int32_t> ids;
  std::int64_t dropped = 0;     // messages that were forgotten for this prompt
  std::int64_t cut_tokens = 0;  // of the newest message, which alone is too long
};

class ChatHistory {
 public:
  // room: the most tokens of a prompt. system: the first message, which is never dropped; may be
  // empty.
  ChatHistory(ChatRendering rendering, const Tokenizer& tokenizer, std::int64_t room,
              const std::string& system);

  void add(const std::string& role, const std::string& text) { turns_.push_back({role, text}); }
  // Forgets everything but the first message.
  void clear();
  // Returns the prompt for the next answer. Forgets the oldest messages, an exchange at a time,
  // until the others fit.
  ChatPrompt prompt();
  const std::vector<ChatTurn>& turns() const { return turns_; }

 private:
  std::size_t kept_first() const;

  ChatRendering rendering_;
  const Tokenizer& tokenizer_;
  std::int64_t room_;
  std::vector<ChatTurn> turns_;
};

}  // namespace trireme
