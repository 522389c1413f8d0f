#include "src/base/stack_dump.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include <execinfo.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr int kMostFrames = 64;

// A signal handler takes no arguments of its own, so its data is global.
std::array<char, PATH_MAX> path{};
std::atomic_flag writing;  // only one thread writes its frames at a time
struct sigaction previous {};

// The functions from here to dump() call only what is safe in a signal handler.
void put(int file, std::string_view text) { (void)!::write(file, text.data(), text.size()); }

void put(int file, long number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  put(file, {digits.data(), static_cast<std::size_t>(end - digits.data())});
}

void dump(int /*signal*/) {
  const int error = errno;
  while (writing.test_and_set(std::memory_order_acquire)) {
  }
  // A FIFO of that name must not block the process; nothing is written to it.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  const int file = ::open(path.data(), kFlags, 0644);
  struct stat status {};
  if (file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    std::array<void*, kMostFrames> frames{};
    const int count = ::backtrace(frames.data(), kMostFrames);
    put(file, "process ");
    put(file, long{::getpid()});
    put(file, ", thread ");
    put(file, ::syscall(SYS_gettid));
    put(file, ", at ");
    put(file, long{::time(nullptr)});
    put(file, " s\n");
    ::backtrace_symbols_fd(frames.data(), count, file);
  }
  if (file >= 0) {
    ::close(file);
  }
  writing.clear(std::memory_order_release);
  errno = error;
}

// SignalStack is the calling thread's stack for signals whose handlers ask for one (SA_ONSTACK).
class SignalStack {
 public:
  SignalStack() {
    const stack_t stack = {memory_.data(), 0, memory_.size()};
    ::sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  // The kernel saves all registers of the processor, up to 11 KiB, in front of the handler's data.
  std::vector<char> memory_ = std::vector<char>(std::size_t{64} << 10);
};

}  // namespace

void use_signal_stack() {
  thread_local const SignalStack stack;
  (void)stack;
}

StackDump::StackDump(const std::filesystem::path& file) {
  const std::string text = std::filesystem::absolute(file);
  if (text.size() >= path.size()) {
    throw ConfigError(fmt::format("the path {} is too long", text));
  }
  std::memcpy(path.data(), text.c_str(), text.size() + 1);
  // The first call of backtrace() loads a library, which a signal handler must not do.
  std::array<void*, 1> frame{};
  (void)::backtrace(frame.data(), 1);
  struct sigaction action {};
  action.sa_handler = dump;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(kSignal, &action, &previous);
  use_signal_stack();
}

StackDump::~StackDump() { ::sigaction(kSignal, &previous, nullptr); }

void ask_for_stacks(pid_t pid) {
  std::error_code gone;
  const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid);
  for (std::filesystem::directory_iterator at(tasks, gone), end; !gone && at != end;
       at.increment(gone)) {
    const std::string name = at->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    (void)::syscall(SYS_tgkill, pid, thread, StackDump::kSignal);
  }
}

}  // namespace trireme
