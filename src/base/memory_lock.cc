#include "src/base/memory_lock.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Returns whether the kernel lets this process lock more than its limit, as with CAP_IPC_LOCK. The
// probe has no pages.
bool may_exceed(rlim_t limit) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (static_cast<std::size_t>(limit) / page + 1) * page;
  void* const probe =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) {
    return false;
  }
  const bool may = ::mlock2(probe, bytes, MLOCK_ONFAULT) == 0;
  ::munmap(probe, bytes);
  return may;
}

}  // namespace

std::string memory_lock_obstacle() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    return fmt::format("the limit of locked memory is not known: {}", std::strerror(errno));
  }
  if (limit.rlim_max == RLIM_INFINITY || may_exceed(limit.rlim_max)) {
    return "";
  }
  return fmt::format("a process may lock only {} of memory",
                     format_bytes(static_cast<std::int64_t>(limit.rlim_max)));
}

void lock_all_memory() {
  std::string obstacle = memory_lock_obstacle();
  rlimit limit{};
  if (obstacle.empty() && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_MEMLOCK, &limit);
    if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) {
      return;
    }
    obstacle = std::strerror(errno);
  }
  throw PolicyError(
      fmt::format("security.lock_memory: the memory of this process cannot be kept out of swap: "
                  "{}. Raise 'ulimit -l' to unlimited (memlock in /etc/security/limits.conf, "
                  "LimitMEMLOCK of slurmd), or set security.lock_memory to false",
                  obstacle));
}

}  // namespace trireme
