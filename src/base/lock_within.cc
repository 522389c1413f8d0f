#include "src/base/lock_within.h"

#include <cerrno>
#include <thread>

#include <fmt/format.h>
#include <sys/file.h>

#include "src/base/error.h"

namespace trireme {

int lock_within(int fd, std::chrono::seconds longest_wait, const std::filesystem::path& path) {
  constexpr std::chrono::milliseconds kBetween{2};
  const auto deadline = std::chrono::steady_clock::now() + longest_wait;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    if (code != EINTR && code != EWOULDBLOCK) {
      return code;
    }
    if (code == EWOULDBLOCK && std::chrono::steady_clock::now() > deadline) {
      throw IoError(
          fmt::format("another process has locked {} for {} s: find it with lslocks, and end it",
                      path.string(), longest_wait.count()));
    }
    std::this_thread::sleep_for(kBetween);
  }
  return 0;
}

}  // namespace trireme
