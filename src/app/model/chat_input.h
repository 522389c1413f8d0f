// ChatInput reads the messages of a chat from standard input, line by line, and knows when the user
// presses Ctrl-C. While it exists, SIGINT only sets an event, unless the process ignores the
// signal. Only one may exist in a process; one thread.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "src/base/file.h"

namespace trireme {

class ChatInput {
 public:
  ChatInput();  // throws IoError
  ~ChatInput();
  ChatInput(const ChatInput&) = delete;
  ChatInput& operator=(const ChatInput&) = delete;

  enum class Event { line, too_long, interrupted, end };
  struct Read {
    Event event = Event::end;
    std::string line;  // without the end of the line
  };
  // Waits for a line. A line of more than kMostLineBytes is skipped to its end. Throws IoError.
  Read read();
  // Returns whether Ctrl-C was pressed since the last call.
  bool take_interrupt();
  bool on_terminal() const { return on_terminal_; }

  static constexpr std::size_t kMostLineBytes = 1U << 20;

 private:
  void wait();  // for input, its end or Ctrl-C
  bool fill();  // returns false at the end of the input

  bool on_terminal_;
  UniqueHandle<FileDescriptorTraits> event_;  // counts how often Ctrl-C was pressed
  bool noted_ = false;
  struct sigaction before_ {};
  std::string held_;
  bool ended_ = false;
};

}  // namespace trireme
