#include "io/h5/guarded_signals.h"

#include <utility>

#include <unistd.h>

#include "src/base/error.h"

namespace trireme {

GuardedSignals::GuardedSignals(std::vector<int> numbers, Handler handler)
    : numbers_(std::move(numbers)), handler_(handler), before_(numbers_.size()) {}

void GuardedSignals::enter() {
  const std::lock_guard lock(mutex_);
  if (guards_++ > 0) {
    return;
  }
  struct sigaction action {};
  action.sa_handler = handler_;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    ::sigaction(numbers_[i], &action, &before_[i]);
  }
}

void GuardedSignals::leave() {
  const std::lock_guard lock(mutex_);
  if (--guards_ > 0) {
    return;
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    ::sigaction(numbers_[i], &before_[i], nullptr);
  }
}

void end_with(const std::string& text) {
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(static_cast<int>(ExitCode::bad_data));
}

}  // namespace trireme
