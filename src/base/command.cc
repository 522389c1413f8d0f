#include "src/base/command.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/pipe.h"

extern char** environ;

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;
using Descriptor = UniqueHandle<FileDescriptorTraits>;

constexpr int kNoSuchCommand = 127;
constexpr std::chrono::milliseconds kBetweenLooks{2};

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
  std::array<char, 4096> bytes{};
  const ssize_t n = ::read(from.get(), bytes.data(), bytes.size());
  if (n > 0) {
    const std::size_t room = kMostCommandOutput - std::min(to.size(), kMostCommandOutput);
    to.append(bytes.data(), std::min(static_cast<std::size_t>(n), room));
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

// Reads until both streams end. Returns false if the deadline passes first.
bool read_both(std::array<Descriptor, 2>& from, CommandResult& result, Clock::time_point deadline) {
  std::array<pollfd, 2> ends = {pollfd{from[0].get(), POLLIN, 0}, pollfd{from[1].get(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      return false;
    }
    (void)::poll(ends.data(), ends.size(), static_cast<int>(std::min<std::int64_t>(left, 1000)));
    for (std::size_t i = 0; i < ends.size(); ++i) {
      std::string& to = i == 0 ? result.output : result.errors;
      if (ends[i].fd >= 0 && ends[i].revents != 0 && !drain(from[i], to)) {
        ends[i].fd = -1;
      }
    }
  }
  return true;
}

// Waits separately from reading the output, because a program may close its output and continue to
// run.
int wait_for(pid_t pid, bool& late, Clock::time_point deadline) {
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(pid, &status, late ? 0 : WNOHANG);
    if (ended == pid) {
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (ended < 0 && errno != EINTR) {
      return kNoSuchCommand;
    }
    if (!late && Clock::now() >= deadline) {
      late = true;
      ::kill(-pid, SIGKILL);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
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

CommandResult run_command(std::vector<std::string> argv, std::chrono::duration<double> limit) {
  const Clock::time_point deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
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
  std::array<Descriptor, 2> ends = {std::move(out.read), std::move(err.read)};
  if (!read_both(ends, result, deadline)) {
    result.late = true;
    ::kill(-pid, SIGKILL);
  }
  result.code = wait_for(pid, result.late, deadline);
  return result;
}

}  // namespace trireme
