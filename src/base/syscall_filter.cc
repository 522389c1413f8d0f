#include "src/base/syscall_filter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/thread_error.h"

namespace trireme {
namespace {

static_assert(__NR_execve == 59, "the filter is written for the system calls of x86-64");

constexpr std::size_t kMostNameBytes = 256;
constexpr __u32 kX32Calls = 0x40000000;    // numbers from here on belong to another architecture
constexpr __u32 kSocketTypes = 0xf;        // without flags such as SOCK_CLOEXEC
constexpr __u32 kObsoletePacketType = 10;  // SOCK_PACKET
constexpr __u32 kRefused = SECCOMP_RET_ERRNO | EPERM;
constexpr __u32 kNoFamily = SECCOMP_RET_ERRNO | EAFNOSUPPORT;

// The filter's program. Jumps only lead forward, by so many instructions beyond the next one.
class Program {
 public:
  Program();
  sock_fprog view() {
    return {static_cast<unsigned short>(instructions_.size()), instructions_.data()};
  }

 private:
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(offset)); }
  void answer(__u32 action) { add(BPF_RET | BPF_K, action); }
  // Gives the answer if the loaded value is `value`.
  void answer_if(__u32 value, __u32 action) {
    instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(action);
  }
  void add(int code, __u32 value) {
    instructions_.push_back(BPF_STMT(static_cast<__u16>(code), value));
  }
  void judge_socket();

  std::vector<sock_filter> instructions_;
};

// Arguments are 64 bits wide; the kernel uses the lower half of a family and of a type, which comes
// first.
Program::Program() {
  load(offsetof(seccomp_data, arch));
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Calls, 0, 1));
  answer(SECCOMP_RET_KILL_PROCESS);
  answer_if(__NR_execve, SECCOMP_RET_USER_NOTIF);
  answer_if(__NR_execveat, SECCOMP_RET_USER_NOTIF);
  answer_if(__NR_io_uring_setup, kRefused);
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 2, 0));
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socketpair, 1, 0));
  answer(SECCOMP_RET_ALLOW);
  judge_socket();
}

void Program::judge_socket() {
  load(offsetof(seccomp_data, args[0]));
  answer_if(AF_UNIX, SECCOMP_RET_ALLOW);
  answer_if(AF_NETLINK, SECCOMP_RET_ALLOW);
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0));
  instructions_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0));
  answer(kNoFamily);
  load(offsetof(seccomp_data, args[1]));
  add(BPF_ALU | BPF_AND | BPF_K, kSocketTypes);
  answer_if(SOCK_RAW, kRefused);
  answer_if(kObsoletePacketType, kRefused);
  answer(SECCOMP_RET_ALLOW);
}

long seccomp(unsigned operation, unsigned flags, void* argument) {
  return ::syscall(SYS_seccomp, operation, flags, argument);
}

std::string reason(int code) {
  switch (code) {
    case EBUSY:
      return "another filter of this process, such as that of a container, has a listener already";
    case ESRCH:
      return "a thread of this process has a filter of its own";
    default:
      return std::generic_category().message(code);
  }
}

[[noreturn]] void refuse(const std::string& why) {
  throw PolicyError(
      fmt::format("security.seccomp: system calls cannot be filtered: {}: use Linux 5.7 or newer "
                  "with seccomp, or set security.seccomp to false",
                  why));
}

// Returns the descriptor on which the kernel reports. The threads' speculation is left as it is,
// which older kernels would otherwise slow down.
int install() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    refuse(reason(errno));
  }
  Program program;
  sock_fprog view = program.view();
  const long reports = seccomp(SECCOMP_SET_MODE_FILTER,
                               SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
                                   SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                               &view);
  if (reports < 0) {
    refuse(reason(errno));
  }
  return static_cast<int>(reports);
}

// Returns the text at an address of a process, as far as it can be read.
std::string text_at(pid_t process, std::uint64_t address) {
  std::array<char, kMostNameBytes> bytes{};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // A read that goes beyond the last page of a mapping fails as a whole.
  const std::size_t most = std::min<std::size_t>(bytes.size(), page - address % page);
  iovec own{bytes.data(), most};
  iovec other{reinterpret_cast<void*>(address), most};  // NOLINT: an address of another process
  if (::process_vm_readv(process, &own, 1, &other, 1, 0) <= 0) {
    return "";
  }
  return {bytes.begin(), std::find(bytes.begin(), bytes.begin() + most, '\0')};
}

std::string refusal_of(const seccomp_notif& report) {
  const bool at_folder = report.data.nr == __NR_execveat;
  const std::string name =
      text_at(static_cast<pid_t>(report.pid), report.data.args[at_folder ? 1 : 0]);
  return fmt::format(
      "security.seccomp: process {} tried to start {}, which was refused: find out what in this "
      "rank did so; if a library of this site has to start programs, set security.seccomp to false",
      report.pid, name.empty() ? "a program" : fmt::format("the program '{}'", printable(name)));
}

}  // namespace

SyscallFilter::SyscallFilter() : end_(make_pipe()) {
  if (const std::string why = obstacle(); !why.empty()) {
    refuse(why);
  }
  reports_.reset(install());
  try {
    receiver_ = std::thread([this] { receive(); });
  } catch (const std::system_error& error) {
    throw ResourceError(no_thread("to watch system calls", error));
  }
}

SyscallFilter::~SyscallFilter() {
  end_.write.reset();
  receiver_.join();
}

std::string SyscallFilter::obstacle() {
  for (const __u32 needed : {SECCOMP_RET_USER_NOTIF, SECCOMP_RET_KILL_PROCESS}) {
    __u32 action = needed;
    if (seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) {
      return reason(errno);
    }
  }
  return "";
}

void SyscallFilter::receive() {
  for (;;) {
    std::array<pollfd, 2> waits = {{{reports_.get(), POLLIN, 0}, {end_.read.get(), POLLIN, 0}}};
    const int ready = ::poll(waits.data(), waits.size(), -1);
    if (ready > 0 && waits[1].revents != 0) {
      return;
    }
    if (ready > 0 && (waits[0].revents & POLLIN) != 0) {
      answer_one();
    } else if (ready > 0) {
      return;  // no process is left that the filter is for
    }
  }
}

void SyscallFilter::answer_one() {
  seccomp_notif_sizes sizes{};
  if (seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) {
    return;
  }
  // A newer kernel may write more than the header of this build knows.
  std::vector<std::uint64_t> room(
      std::max<std::size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)) / 8 + 1);
  std::vector<std::uint64_t> answer_room(
      std::max<std::size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)) / 8 + 1);
  auto* const report = reinterpret_cast<seccomp_notif*>(room.data());
  if (::ioctl(reports_.get(), SECCOMP_IOCTL_NOTIF_RECV, report) != 0) {
    return;  // the process has ended meanwhile
  }
  const std::string refusal = refusal_of(*report);
  {
    const std::lock_guard lock(mutex_);
    if (refusal_.empty()) {
      refusal_ = refusal;
    }
  }
  say(refusal);  // training may take a while to notice
  auto* const answer = reinterpret_cast<seccomp_notif_resp*>(answer_room.data());
  answer->id = report->id;
  answer->error = -EPERM;
  (void)::ioctl(reports_.get(), SECCOMP_IOCTL_NOTIF_SEND, answer);
}

void SyscallFilter::check() const {
  const std::lock_guard lock(mutex_);
  if (!refusal_.empty()) {
    throw PolicyError(refusal_);
  }
}

}  // namespace trireme
