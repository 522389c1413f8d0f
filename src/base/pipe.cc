#include "src/base/pipe.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw_errno(errno, "make", "a pipe");
  }
  return {UniqueHandle<FileDescriptorTraits>(ends[0]), UniqueHandle<FileDescriptorTraits>(ends[1])};
}

}  // namespace trireme
