// Each test forks, because a filter cannot be taken off again.
#include "src/base/syscall_filter.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

constexpr int kPassed = 0;
constexpr int kObsoletePacketType = 10;  // SOCK_PACKET

// Returns the status of a child process that installs a filter and ends with what `test` returns.
int status_of(const std::function<int(const SyscallFilter&)>& test) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)!::freopen("/dev/null", "w", stderr);  // what the filter says to people
    const SyscallFilter filter;
    ::_exit(test(filter));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

int code_of(const std::function<int(const SyscallFilter&)>& test) {
  const int status = status_of(test);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// Returns false with errno if no program can be started. If one can, it ends this process with 1.
bool starts() {
  std::array<char*, 2> words = {const_cast<char*>("/bin/false"), nullptr};
  ::execv(words[0], words.data());
  return false;
}

std::string refusal_of(const SyscallFilter& filter) {
  return message_of<PolicyError>([&] { filter.check(); });
}

class SyscallFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SyscallFilter::obstacle(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }
};

TEST_F(SyscallFilterTest, NoProgramStarts) {
  EXPECT_EQ(code_of([](const SyscallFilter& filter) {
              filter.check();  // nothing has happened yet
              const bool refused = !starts() && errno == EPERM;
              const std::string text = refusal_of(filter);
              return refused && text.find("'/bin/false'") != std::string::npos ? kPassed : 1;
            }),
            kPassed);
}

TEST_F(SyscallFilterTest, NoProgramStartsByADescriptor) {
  EXPECT_EQ(code_of([](const SyscallFilter& filter) {
              const int program = ::open("/bin/false", O_RDONLY);
              std::array<char*, 2> words = {const_cast<char*>("false"), nullptr};
              const long result = ::syscall(SYS_execveat, program, "", words.data(), environ,
                                            0x1000);  // AT_EMPTY_PATH
              const bool refused = result == -1 && errno == EPERM;
              return refused && !refusal_of(filter).empty() ? kPassed : 1;
            }),
            kPassed);
}

TEST_F(SyscallFilterTest, NoShellStarts) {
  EXPECT_EQ(code_of([](const SyscallFilter& filter) {
              pid_t pid = 0;
              std::array<char*, 2> words = {const_cast<char*>("/bin/false"), nullptr};
              if (::posix_spawn(&pid, words[0], nullptr, nullptr, words.data(), environ) != EPERM) {
                return 1;
              }
              const int status = std::system("exit 3");
              return WIFEXITED(status) && WEXITSTATUS(status) == 127 && !refusal_of(filter).empty()
                         ? kPassed
                         : 2;
            }),
            kPassed);
}

TEST_F(SyscallFilterTest, ChildrenAndThreadsAreFilteredToo) {
  const auto refused = [] { return !starts() && errno == EPERM; };
  const pid_t outer = ::fork();
  if (outer == 0) {
    (void)!::freopen("/dev/null", "w", stderr);
    std::atomic<bool> installed = false;
    std::atomic<bool> old_thread_refused = false;
    std::thread older([&] {
      while (!installed) {
        std::this_thread::yield();
      }
      old_thread_refused = refused();
    });
    const SyscallFilter filter;
    installed = true;
    older.join();
    bool new_thread_refused = false;
    std::thread([&] { new_thread_refused = refused(); }).join();
    const pid_t inner = ::fork();
    if (inner == 0) {
      ::_exit(refused() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(inner, &status, 0);
    ::_exit(old_thread_refused && new_thread_refused && status == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(outer, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SyscallFilterTest, SocketsAreOfFewFamilies) {
  struct Case {
    int family;
    int type;
    int expected;  // errno, or 0
  };
  // Some of these families may be missing in the kernel, which then says the same.
  const std::array<Case, 13> cases = {{{AF_UNIX, SOCK_STREAM, 0},
                                       {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0},
                                       {AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0},
                                       {AF_INET, SOCK_DGRAM, 0},
                                       {AF_NETLINK, SOCK_RAW, 0},
                                       {AF_INET, SOCK_RAW, EPERM},
                                       {AF_INET, SOCK_RAW | SOCK_CLOEXEC, EPERM},
                                       {AF_INET6, SOCK_RAW, EPERM},
                                       {AF_INET, kObsoletePacketType, EPERM},
                                       {AF_PACKET, SOCK_RAW, EAFNOSUPPORT},
                                       {AF_ALG, SOCK_SEQPACKET, EAFNOSUPPORT},
                                       {AF_VSOCK, SOCK_STREAM, EAFNOSUPPORT},
                                       {AF_BLUETOOTH, SOCK_RAW, EAFNOSUPPORT}}};
  for (const Case& each : cases) {
    const int code = code_of([&](const SyscallFilter& filter) {
      const int raw_protocol = each.family == AF_INET && each.expected != 0 ? IPPROTO_ICMP : 0;
      const int socket = ::socket(each.family, each.type, raw_protocol);
      filter.check();  // is about programs only
      return socket >= 0 ? 0 : errno;
    });
    EXPECT_EQ(code, each.expected) << each.family << " " << each.type;
  }
}

TEST_F(SyscallFilterTest, NoRingMakesSocketsInstead) {
  EXPECT_EQ(code_of([](const SyscallFilter&) {
              std::array<char, 128> parameters{};
              return ::syscall(SYS_io_uring_setup, 4, parameters.data()) == -1 ? errno : 0;
            }),
            EPERM);
}

TEST_F(SyscallFilterTest, OtherArchitecturesAreNoWayAround) {
  // The numbers of system calls differ there: 59 and 11 are not execve.
  const int x32 = status_of([](const SyscallFilter&) {
    (void)::syscall(0x40000000 | SYS_getpid);
    return kPassed;
  });
  EXPECT_TRUE(WIFSIGNALED(x32)) << x32;
  const int i386 = status_of([](const SyscallFilter&) {
    long result = 20;  // getpid
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    return kPassed;
  });
  EXPECT_TRUE(WIFSIGNALED(i386)) << i386;
}

TEST_F(SyscallFilterTest, TheRestIsAsBefore) {
  EXPECT_EQ(code_of([](const SyscallFilter&) {
              std::array<int, 2> ends{};
              char byte = 'x';
              const bool talks = ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0 &&
                                 ::write(ends[0], &byte, 1) == 1 && ::read(ends[1], &byte, 1) == 1;
              const TempFolder folder;
              const int file = ::open((folder.path() / "file").c_str(), O_CREAT | O_RDWR, 0600);
              const bool writes = ::write(file, &byte, 1) == 1 && ::fsync(file) == 0;
              void* const memory =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
              return talks && writes && memory != MAP_FAILED ? kPassed : 1;
            }),
            kPassed);
}

TEST_F(SyscallFilterTest, OutlivesItsObject) {
  const pid_t child = ::fork();
  if (child == 0) {
    { const SyscallFilter filter; }
    ::_exit(!starts() && errno == ENOSYS ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trireme
