// Each test forks, because the limits and locks of a process last until its end.
#include "src/base/memory_lock.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

constexpr std::size_t kBytes = std::size_t{8} << 20;
constexpr uid_t kNobody = 65534;

// Returns what a child process ends with.
int code_of(const std::function<int()>& test) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(test());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// Returns whether the mapping that begins at `address` is locked ("lo" among its flags).
bool is_kept_out_of_swap(const void* address) {
  std::ifstream file("/proc/self/smaps");
  const std::string begin = fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(address));
  std::string line;
  bool is_here = false;
  while (std::getline(file, line)) {
    is_here = is_here || line.starts_with(begin);
    if (is_here && line.starts_with("VmFlags:")) {
      return line.find(" lo") != std::string::npos;
    }
  }
  return false;
}

void* map_pages() {
  return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Takes from a child process what would let it lock as much as it likes.
bool limit_to(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
         (::geteuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0);
}

TEST(MemoryLock, HoldsForWhatIsThereAndForWhatIsMappedLater) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers replace mlockall() by a function that does nothing";
#endif
  if (const std::string obstacle = memory_lock_obstacle(); !obstacle.empty()) {
    GTEST_SKIP() << obstacle;
  }
  EXPECT_EQ(code_of([] {
              const void* const before = map_pages();
              if (is_kept_out_of_swap(before)) {
                return 1;
              }
              lock_all_memory();
              return is_kept_out_of_swap(before) && is_kept_out_of_swap(map_pages()) ? 0 : 2;
            }),
            0);
}

TEST(MemoryLock, NeedsAnUnlimitedAmount) {
  EXPECT_EQ(code_of([] {
              if (!limit_to(rlim_t{64} << 10)) {
                return 1;
              }
              const std::string obstacle = memory_lock_obstacle();
              const std::string refusal = message_of<PolicyError>([] { lock_all_memory(); });
              const bool is_named = obstacle == "a process may lock only 64 KiB of memory" &&
                                    refusal.find(obstacle) != std::string::npos &&
                                    refusal.find("ulimit -l") != std::string::npos;
              return is_named && !is_kept_out_of_swap(map_pages()) ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace trireme
