#include "src/app/model/chat_history.h"

#include <utility>

#include "src/base/check.h"

namespace trireme {
namespace {

std::string without_blanks_at_end(const std::string& text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::string ChatMarks::text(const std::vector<ChatTurn>& turns) const {
  std::string text;
  for (const ChatTurn& turn : turns) {
    text += turn.role == "user" ? user : turn.role == "assistant" ? assistant : "";
    text += turn.text + end;
  }
  // Tokenizers join a blank with the word behind it, which the model has to write.
  return text + without_blanks_at_end(assistant);
}

std::string ChatMarks::stop() const { return end + without_blanks_at_end(user); }

ChatHistory::ChatHistory(ChatRendering rendering, const Tokenizer& tokenizer, std::int64_t room,
                         const std::string& system)
    : rendering_(std::move(rendering)), tokenizer_(tokenizer), room_(room) {
  check(room >= 1, "a prompt has room for a token");
  if (!system.empty()) {
    add("system", system);
  }
}

std::size_t ChatHistory::kept_first() const {
  return !turns_.empty() && turns_.front().role == "system" ? 1 : 0;
}

void ChatHistory::clear() { turns_.resize(kept_first()); }

ChatPrompt ChatHistory::prompt() {
  ChatPrompt prompt;
  const auto first = static_cast<std::ptrdiff_t>(kept_first());
  while (true) {
    prompt.ids.clear();
    tokenizer_.encode(rendering_(turns_), prompt.ids);
    if (std::ssize(prompt.ids) <= room_) {
      break;
    }
    // The newest message of the user stays.
    std::ptrdiff_t next = first + 1;
    while (next < std::ssize(turns_) && turns_[static_cast<std::size_t>(next)].role != "user") {
      ++next;
    }
    if (next >= std::ssize(turns_)) {
      prompt.cut_tokens = std::ssize(prompt.ids) - room_;
      prompt.ids.erase(prompt.ids.begin(), prompt.ids.begin() + prompt.cut_tokens);
      break;
    }
    turns_.erase(turns_.begin() + first, turns_.begin() + next);
    prompt.dropped += next - first;
  }
  if (prompt.ids.empty()) {
    prompt.ids.push_back(tokenizer_.end_of_document());
  }
  return prompt;
}

}  // namespace trireme
