#include "src/app/model/chat_input.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// A signal handler has no arguments of ours.
std::atomic<bool> interrupt_seen{false};

void note_interrupt(int) { interrupt_seen = true; }

}  // namespace

ChatInput::ChatInput() : on_terminal_(::isatty(STDIN_FILENO) != 0) {
  interrupt_seen = false;
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler != SIG_IGN) {
    struct sigaction action {};
    action.sa_handler = note_interrupt;  // without SA_RESTART, so that it ends a read
    ::sigaction(SIGINT, &action, nullptr);
    noted_ = true;
  }
}

ChatInput::~ChatInput() {
  if (noted_) {
    ::sigaction(SIGINT, &before_, nullptr);
  }
}

bool ChatInput::take_interrupt() { return interrupt_seen.exchange(false); }

bool ChatInput::fill() {
  char part[4096];
  const ssize_t count = ::read(STDIN_FILENO, part, sizeof(part));
  if (count < 0 && errno != EINTR) {
    throw IoError(fmt::format("cannot read standard input: {}", std::strerror(errno)));
  }
  if (count > 0) {
    held_.append(part, static_cast<std::size_t>(count));
  }
  return count != 0;
}

ChatInput::Read ChatInput::read() {
  bool too_long = false;
  while (true) {
    const std::size_t end = held_.find('\n');
    if (end != std::string::npos) {
      Read result{too_long || end > kMostLineBytes ? Event::too_long : Event::line,
                  held_.substr(0, end)};
      held_.erase(0, end + 1);
      if (result.line.ends_with('\r')) {
        result.line.pop_back();
      }
      return result;
    }
    if (held_.size() > kMostLineBytes) {
      too_long = true;
      held_.clear();
    }
    if (ended_) {
      // The last line may lack its end.
      return {too_long        ? Event::too_long
              : held_.empty() ? Event::end
                              : Event::line,
              std::exchange(held_, {})};
    }
    ended_ = !fill();
    if (take_interrupt()) {
      if (on_terminal_) {  // which has discarded its part of the line, too
        held_.clear();
      }
      return {Event::interrupted, {}};
    }
  }
}

}  // namespace trireme
