#include "slurm/process/child.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/pipe.h"

extern char** environ;

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNoSuchProgram = 127;
constexpr int kCodeUnknown = 255;
constexpr std::chrono::milliseconds kLook{5};

// All that exec needs. It is made before fork, because afterwards only system calls are safe.
struct ExecImage {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;

  explicit ExecImage(const ChildPlan& plan) {
    std::map<std::string, std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const std::size_t equals = text.find('=');
      variables[text.substr(0, equals)] =
          equals == std::string::npos ? "" : text.substr(equals + 1);
    }
    for (const auto& [name, value] : plan.environment) {
      if (value.empty()) {
        variables.erase(name);
      } else {
        variables[name] = value;
      }
    }
    for (const auto& [name, value] : variables) {
      environment.push_back(name + "=" + value);
    }
    for (std::string& entry : environment) {
      envp.push_back(entry.data());
    }
    envp.push_back(nullptr);
    for (const std::string& word : plan.argv) {
      argv.push_back(const_cast<char*>(word.c_str()));
    }
    argv.push_back(nullptr);
  }
};

// Writes `input` into a new pipe, whose capacity is at least 4 KiB, and returns the end to read.
UniqueHandle<FileDescriptorTraits> pipe_with(const std::string& input) {
  Pipe pipe = make_pipe();
  if (input.size() > 4096 ||
      ::write(pipe.write.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size())) {
    throw IoError("the input of a child process does not fit into a pipe");
  }
  return std::move(pipe.read);
}

[[noreturn]] void become(const ChildPlan& plan, const ExecImage& image, pid_t parent, int input,
                         int report) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGXFSZ}) {
    ::signal(number, SIG_DFL);
  }
  if (plan.own_group) {
    ::setpgid(0, 0);
  }
  if (plan.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {  // the parent has ended before prctl()
      ::_exit(kNoSuchProgram);
    }
  }
  ::dup2(input, STDIN_FILENO);
  if (plan.output >= 0) {
    ::dup2(plan.output, STDOUT_FILENO);
    ::dup2(plan.output, STDERR_FILENO);
  }
  ::execvpe(image.argv[0], image.argv.data(), image.envp.data());
  const int code = errno;
  (void)!::write(report, &code, sizeof(code));
  ::_exit(kNoSuchProgram);
}

}  // namespace

Child::Child(const ChildPlan& plan) : own_group_(plan.own_group) {
  const ExecImage image(plan);
  const auto input = pipe_with(plan.input);
  Pipe failure = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw IoError(fmt::format("cannot start {}: {}", plan.argv.front(), std::strerror(errno)));
  }
  if (pid_ == 0) {
    become(plan, image, parent, input.get(), failure.write.get());
  }
  if (own_group_) {
    ::setpgid(pid_, pid_);  // both parent and child do this, so that the order does not matter
  }
  // A successful exec closes the child's end, so read() returns 0 then.
  failure.write.reset();
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(failure.read.get(), &code, sizeof(code))) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof(code))) {
    ::waitpid(pid_, nullptr, 0);
    const std::string why =
        fmt::format("cannot start {}: {}", plan.argv.front(), std::strerror(code));
    if (code == ENOENT || code == EACCES || code == ENOEXEC || code == ENOTDIR) {
      throw NotFound(why);
    }
    throw IoError(why);
  }
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), own_group_(other.own_group_), code_(other.code_) {}

Child::~Child() {
  if (pid_ > 0 && !poll()) {
    own_group_ ? signal_group(SIGKILL) : signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<int> Child::poll() {
  if (!code_ && pid_ > 0) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (ended < 0 && errno == ECHILD) {
      code_ = kCodeUnknown;  // this process ignores SIGCHLD, so the code is lost
    }
  }
  return code_;
}

std::optional<int> Child::wait(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (!poll() && Clock::now() < end) {
    std::this_thread::sleep_for(kLook);
  }
  return code_;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !code_) {
    ::kill(pid_, number);
  }
}

void Child::signal_group(int number) const {
  if (pid_ > 0 && !code_) {
    ::kill(own_group_ ? -pid_ : pid_, number);
  }
}

}  // namespace trireme
