#include "src/base/say.h"

#include <exception>
#include <string>

#include <sys/uio.h>
#include <unistd.h>

#include "src/base/printable.h"

namespace trireme {

void say(std::string_view line) noexcept {
  try {
    std::string text = printable_lines(line);
    char end = '\n';
    // iovec takes pointers to non-const data, but writev() only reads it.
    const iovec parts[] = {{text.data(), text.size()}, {&end, 1}};
    [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, parts, 2);
  } catch (const std::exception&) {
    // There is no memory left for the line.
  }
}

}  // namespace trireme
