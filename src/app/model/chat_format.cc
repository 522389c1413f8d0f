#include "src/app/model/chat_format.h"

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

// Stands for an answer; no template writes it.
constexpr std::string_view kSomeAnswer = "answer-5f0c2a";

std::string rendered(const ChatTemplate& chat_template, const std::vector<ChatTurn>& turns,
                     bool asks) {
  auto messages = nlohmann::ordered_json::array();
  for (const ChatTurn& turn : turns) {
    messages.push_back({{"role", turn.role}, {"content", turn.text}});
  }
  return chat_template.render(messages, nullptr, asks);
}

// Returns what the template writes after an answer, without white space at its ends.
std::string end_of_answers(const ChatTemplate& chat_template) {
  const std::string text =
      rendered(chat_template, {{"user", "?"}, {"assistant", std::string(kSomeAnswer)}}, false);
  const std::size_t at = text.rfind(kSomeAnswer);
  if (at == std::string::npos) {
    return "";
  }
  const std::string end = text.substr(at + kSomeAnswer.size());
  const std::size_t first = end.find_first_not_of(" \t\r\n");
  return first == std::string::npos
             ? ""
             : end.substr(first, end.find_last_not_of(" \t\r\n") + 1 - first);
}

}  // namespace

ChatFormat format_of(const ChatMarks& marks) {
  return {[marks](const std::vector<ChatTurn>& turns) { return marks.text(turns); },
          {marks.stop()},
          false};
}

ChatFormat format_of(const ChatTemplate& chat_template) {
  ChatFormat format{[chat_template](const std::vector<ChatTurn>& turns) {
                      return rendered(chat_template, turns, true);
                    },
                    {},
                    true};
  if (std::string end = end_of_answers(chat_template); !end.empty()) {
    format.stops.push_back(std::move(end));
  }
  return format;
}

}  // namespace trireme
