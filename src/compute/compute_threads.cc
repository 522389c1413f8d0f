#include "src/compute/compute_threads.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>

#include "src/base/error.h"
#include "src/base/floating_point.h"
#include "src/base/stack_dump.h"
#include "src/base/units.h"
#include "src/kernels/cpu/team.h"

namespace trireme {
namespace {

// Kernels and oneDNN need less than half of this.
constexpr std::int64_t kLeastStackBytes = 256 << 10;

// Returns the bytes that OMP_STACKSIZE or GOMP_STACKSIZE asks for: a number with a suffix B, K, M
// or G; without a suffix it counts KiB. Returns 0 if the variable is unset or malformed, which
// libgomp treats alike.
std::int64_t asked_stack_bytes(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) {
    return 0;
  }
  const char* first = text + std::strspn(text, " ");
  std::int64_t number = 0;
  const auto parsed = std::from_chars(first, text + std::strlen(text), number);
  if (parsed.ec != std::errc() || number < 0 || number > (std::int64_t{1} << 32)) {
    return 0;
  }
  const char* const unit = parsed.ptr + std::strspn(parsed.ptr, " ");
  const char* const rest = *unit == '\0' ? unit : unit + 1;
  if (rest[std::strspn(rest, " ")] != '\0') {
    return 0;
  }
  switch (*unit) {
    case 'b':
    case 'B':
      return number;
    case 'm':
    case 'M':
      return number << 20;
    case 'g':
    case 'G':
      return number << 30;
    case 'k':
    case 'K':
    case '\0':
      return number << 10;
    default:
      return 0;
  }
}

// Starts threads that all live until the destructor, to find out whether the system allows them.
class TrialThreads {
 public:
  explicit TrialThreads(std::int64_t stack_bytes) {
    ::pthread_attr_init(&attributes_);
    if (stack_bytes > 0) {
      ::pthread_attr_setstacksize(&attributes_, static_cast<std::size_t>(stack_bytes));
    }
    ::pthread_mutex_lock(&gate_);
  }
  ~TrialThreads() {
    ::pthread_mutex_unlock(&gate_);
    for (const pthread_t thread : started_) {
      ::pthread_join(thread, nullptr);
    }
    ::pthread_attr_destroy(&attributes_);
  }
  TrialThreads(const TrialThreads&) = delete;
  TrialThreads& operator=(const TrialThreads&) = delete;

  // Returns 0 or an error number.
  int start() {
    pthread_t thread{};
    const int error = ::pthread_create(&thread, &attributes_, &TrialThreads::wait, &gate_);
    if (error == 0) {
      started_.push_back(thread);
    }
    return error;
  }

 private:
  static void* wait(void* gate) {
    auto* const mutex = static_cast<pthread_mutex_t*>(gate);
    ::pthread_mutex_lock(mutex);
    ::pthread_mutex_unlock(mutex);
    return nullptr;
  }

  pthread_attr_t attributes_{};
  pthread_mutex_t gate_ = PTHREAD_MUTEX_INITIALIZER;
  std::vector<pthread_t> started_;
};

// The thread that calls kernels computes, too; others get this limit's size if nothing else is
// asked for. A stack that overflows ends the process with a signal.
void check_stack_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(kLeastStackBytes)) {
    throw ConfigError(fmt::format(
        "a thread of this process may use {} of stack (ulimit -s), but kernels need "
        "{}: run 'ulimit -s 8192' before the start",
        format_bytes(static_cast<std::int64_t>(limit.rlim_cur)), format_bytes(kLeastStackBytes)));
  }
}

// If libgomp can't start a thread, it ends the process. This finds out beforehand, and throws with
// a reason and the right exit code.
void try_threads(int threads) {
  check_stack_limit();
  const std::int64_t asked = asked_stack_bytes("OMP_STACKSIZE");
  const std::int64_t stack = asked > 0 ? asked : asked_stack_bytes("GOMP_STACKSIZE");
  if (stack > 0 && stack < kLeastStackBytes) {
    throw ConfigError(fmt::format(
        "OMP_STACKSIZE gives a compute thread {} of stack, but kernels need {}: unset or raise it",
        format_bytes(stack), format_bytes(kLeastStackBytes)));
  }
  TrialThreads trial(stack);
  for (int thread = 1; thread < threads; ++thread) {
    if (const int error = trial.start(); error != 0) {
      throw ResourceError(
          fmt::format("only {} of {} compute threads could be started ({}): lower train.threads, "
                      "or raise the limits on processes, memory or stacks (ulimit -u, ulimit -v, "
                      "OMP_STACKSIZE, the job's pids and memory)",
                      thread, threads, std::strerror(error)));
    }
  }
}

struct Team {
  int threads = 0;
  int restored = 0;  // number of threads whose rounding or underflow mode was not the default
};

Team start_team(int threads) {
  std::atomic<int> met{0};
  std::atomic<int> restored{0};
#pragma omp parallel num_threads(threads)
  {
    ++met;
    use_signal_stack();
    restored += restore_floating_point() ? 1 : 0;
  }
  return {met, restored};
}

}  // namespace

ComputeThreads measure_compute_threads(int wanted) {
  const int expected = cpu::team_for(wanted);
  try_threads(expected);
  const Team team = start_team(expected);
  ComputeThreads result{team.threads, {}};
  if (team.threads < wanted) {
    result.warnings.push_back(fmt::format(
        "OpenMP provides {} of the {} requested compute threads{}: the run continues with {}, with "
        "the same results but more slowly",
        team.threads, wanted,
        expected < wanted
            ? fmt::format(" (OMP_THREAD_LIMIT is {}: unset or raise it)", omp_get_thread_limit())
            : "",
        team.threads));
  }
  if (team.restored > 0) {
    result.warnings.push_back(
        fmt::format("a library, probably one built with -ffast-math, had changed how {} round or "
                    "underflow: the default was restored",
                    counted(team.restored, "compute thread")));
  }
  return result;
}

}  // namespace trireme
