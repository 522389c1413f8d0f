#include "src/base/say.h"

#include <sys/uio.h>
#include <unistd.h>

namespace trireme {

void say(std::string_view line) noexcept {
  char end = '\n';
  // What the system calls don't write to they don't change.
  const iovec parts[] = {{const_cast<char*>(line.data()), line.size()}, {&end, 1}};
  [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, parts, 2);
}

}  // namespace trireme
