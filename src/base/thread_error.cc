#include "src/base/thread_error.h"

#include <fmt/core.h>

namespace trireme {

std::string no_thread(std::string_view purpose, const std::system_error& error) {
  return fmt::format(
      "no thread can be started{}{} ({}): raise the limits of this process (ulimit -u for threads, "
      "ulimit -v and -d for memory) or of its job",
      purpose.empty() ? "" : " ", purpose, error.code().message());
}

}  // namespace trireme
