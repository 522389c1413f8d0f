#include "src/app/run/stop_message.h"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "src/train/ending/time_limit.h"

namespace trireme {
namespace {

// Returns what stopped the run. A launch sends SIGUSR2 to its ranks, whatever stopped the launch.
std::string stop_cause(int signal) {
  if (signal == kTimeLimitSignal) {
    return "before the end of the job";
  }
  if (signal == SIGUSR2 && std::getenv("TRIREME_GENERATION") != nullptr) {
    return "by the launch";
  }
  if (signal == SIGXCPU) {
    return "at the limit of processor time (SIGXCPU; raise ulimit -St)";
  }
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "on a signal" : fmt::format("on SIG{}", name);
}

}  // namespace

std::string stop_message(const TrainingOutcome& outcome) {
  return fmt::format("stopped {}; checkpoint saved at step {}; run the same command to resume",
                     stop_cause(outcome.stop_signal), outcome.step);
}

}  // namespace trireme
