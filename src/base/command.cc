#include "src/base/command.h"

#include <algorithm>
#include <array>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/interruption.h"
#include "src/base/pipe.h"

extern char** environ;

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = UniqueHandle<FileDescriptorTraits>;

constexpr int kNoSuchCommand = 127;
constexpr std::size_t kChunk = 4096;
constexpr std::chrono::milliseconds kBetweenLooks{2};
// A signal need not wake the thread that waits here.
constexpr std::chrono::milliseconds kBetweenLooksAtSignals{100};
constexpr std::chrono::seconds kBetweenSignals{3};

Clock::duration ticks(std::chrono::duration<double> seconds) {
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

// Starts the program in a process group of its own, with the default action for every signal.
// Returns 0 if it can't be started.
pid_t spawn(std::vector<std::string>& argv, const Pipe& out, const Pipe& err) {
  std::vector<char*> words;
  for (std::string& word : argv) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int code = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return code == 0 ? pid : 0;
}

// Appends the available bytes to `to`, up to kMostCommandOutput in all. Returns false at the end of
// the stream.
bool drain(const Descriptor& from, std::string& to) {
  std::array<char, kChunk> bytes{};
  const ssize_t n = ::read(from.get(), bytes.data(), bytes.size());
  if (n > 0) {
    const std::size_t room = kMostCommandOutput - std::min(to.size(), kMostCommandOutput);
    to.append(bytes.data(), std::min(static_cast<std::size_t>(n), room));
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

// Why a command has to end before it ends by itself.
enum class Cause { none, late, interrupted };

// When a command has to end, and whether an interruption of this process ends it, too.
struct Limits {
  Clock::time_point deadline;
  bool interruptible = false;

  Cause cause_to_end() const {
    if (interruptible && interruption() != 0) {
      return Cause::interrupted;
    }
    return Clock::now() >= deadline ? Cause::late : Cause::none;
  }
};

using Streams = std::array<Descriptor, 2>;  // stdout and stderr; reset at their ends

// Reads what the streams hold, and waits for more for at most `patience`.
void read_some(Streams& from, CommandResult& result, std::chrono::milliseconds patience) {
  std::array<pollfd, 2> ends = {pollfd{from[0].get(), POLLIN, 0}, pollfd{from[1].get(), POLLIN, 0}};
  (void)::poll(ends.data(), ends.size(), static_cast<int>(patience.count()));
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::string& to = i == 0 ? result.output : result.errors;
    if (from[i] && ends[i].revents != 0 && !drain(from[i], to)) {
      from[i].reset();
    }
  }
}

// Reads what the streams hold when the command has ended. Programs that have outlived it may go on
// to write, so what comes later is not read.
void read_rest(Streams& from, CommandResult& result) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    int left = 0;
    if (from[i] && ::ioctl(from[i].get(), FIONREAD, &left) == 0) {
      for (; left > 0; left -= static_cast<int>(kChunk)) {
        (void)drain(from[i], i == 0 ? result.output : result.errors);
      }
    }
  }
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

// Ends the process group: a launcher gets its signals first and time to end what it has started in
// other groups and on other nodes.
void end_group(pid_t pid, Streams& from, CommandResult& result, const CommandEnd& end) {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point last = begin + ticks(end.grace);
  std::size_t sent = 0;
  for (Clock::time_point now = begin; now < last && !interrupted_again() && !has_ended(pid);
       now = Clock::now()) {
    if (sent < end.signals.size() && now >= begin + sent * kBetweenSignals) {
      ::kill(-pid, end.signals[sent++]);
    }
    read_some(from, result, kBetweenLooks);
  }
  ::kill(-pid, SIGKILL);
}

// Runs the command to its end, or until there is a cause to end it. A program may close its output
// and continue to run.
Cause follow(pid_t pid, Streams& from, CommandResult& result, const Limits& limits) {
  Cause cause = Cause::none;
  while ((from[0] || from[1]) && cause == Cause::none) {
    read_some(from, result, kBetweenLooksAtSignals);
    cause = limits.cause_to_end();
  }
  while (cause == Cause::none && !has_ended(pid)) {
    std::this_thread::sleep_for(kBetweenLooks);
    cause = limits.cause_to_end();
  }
  return cause;
}

int code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) != pid) {
    if (errno != EINTR) {
      return kNoSuchCommand;
    }
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string CommandResult::complaint(const std::string& name) const {
  if (late) {
    return fmt::format("{}: no answer within {:g} s", name, limit_seconds);
  }
  if (code == kNoSuchCommand) {
    return fmt::format("{}: the program was not found", name);
  }
  const std::string first = errors.substr(0, errors.find('\n'));
  return fmt::format("{}: exit code {}{}{}", name, code, first.empty() ? "" : ": ", first);
}

CommandResult run_command(std::vector<std::string> argv, std::chrono::duration<double> limit,
                          const CommandEnd& end) {
  const Limits limits{Clock::now() + ticks(limit), end.grace.count() > 0};
  if (limits.interruptible) {
    throw_if_interrupted();
  }
  CommandResult result;
  result.limit_seconds = limit.count();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const pid_t pid = spawn(argv, out, err);
  if (pid == 0) {
    result.code = kNoSuchCommand;
    return result;
  }
  out.write.reset();
  err.write.reset();
  Streams from = {std::move(out.read), std::move(err.read)};
  const Cause cause = follow(pid, from, result, limits);
  if (cause != Cause::none) {
    end_group(pid, from, result, end);
  }
  result.late = cause == Cause::late;
  result.code = code_of(pid);
  read_rest(from, result);
  if (cause == Cause::interrupted) {
    throw Interrupted();
  }
  return result;
}

}  // namespace trireme
