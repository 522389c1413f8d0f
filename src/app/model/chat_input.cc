#include "src/app/model/chat_input.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// A signal handler has no arguments of ours. An event, which a wait for input watches too: a flag
// could be set just before the wait begins, or by another thread, and wake nobody.
std::atomic<int> interrupt_event{-1};

void note_interrupt(int) {
  const int before = errno;
  (void)::eventfd_write(interrupt_event, 1);
  errno = before;
}

}  // namespace

ChatInput::ChatInput()
    : on_terminal_(::isatty(STDIN_FILENO) != 0), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_.get() < 0) {
    throw IoError(fmt::format("cannot watch for Ctrl-C: {}", std::strerror(errno)));
  }
  ::sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler != SIG_IGN) {
    interrupt_event = event_.get();
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    action.sa_flags = SA_RESTART;  // a write of an answer goes on
    ::sigaction(SIGINT, &action, nullptr);
    noted_ = true;
  }
}

ChatInput::~ChatInput() {
  if (noted_) {
    ::sigaction(SIGINT, &before_, nullptr);
  }
}

bool ChatInput::take_interrupt() {
  eventfd_t count = 0;
  return ::eventfd_read(event_.get(), &count) == 0;
}

void ChatInput::wait() {
  pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {event_.get(), POLLIN, 0}};
  while (::poll(watched, std::size(watched), -1) < 0) {
    if (errno != EINTR) {
      throw IoError(fmt::format("cannot wait for standard input: {}", std::strerror(errno)));
    }
  }
}

bool ChatInput::fill() {
  char part[4096];
  const ssize_t count = ::read(STDIN_FILENO, part, sizeof(part));
  if (count < 0 && errno != EINTR && errno != EAGAIN) {
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
    wait();
    if (take_interrupt()) {
      if (on_terminal_) {  // which has discarded its part of the line, too
        held_.clear();
      }
      return {Event::interrupted, {}};
    }
    ended_ = !fill();
  }
}

}  // namespace trireme
