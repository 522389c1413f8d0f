#include "slurm/launch/deputy.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <unistd.h>

#include "slurm/process/silence.h"
#include "slurm/wire/handshake.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/say.h"

namespace trireme {
namespace {

constexpr double kSilenceSeconds = 10;
constexpr std::chrono::seconds kCommandLimit{
    10};  // a controller that is overloaded answers late, or never
constexpr int kAttempts = 30;
constexpr std::chrono::seconds kBetween{2};

// Whether it said farewell.
bool watch(Connection& supervisor, const std::string& node) {
  Silence silence;
  while (!supervisor.closed() && silence.seconds() < kSilenceSeconds) {
    if (const auto text = supervisor.receive_one(1)) {
      silence.heard();
      if (parse_order(*text).kind == Order::Kind::bye) {
        return true;
      }
    }
  }
  say(fmt::format("trireme launch deputy on {}: the supervisor is gone", node));
  return false;
}

int requeue(std::int64_t job) {
  const std::string number = fmt::format("{}", job);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const CommandResult shown = run_command({"scontrol", "show", "job", number}, kCommandLimit);
    const JobState state = parse_job_state(shown.output);
    if (!should_requeue(state)) {
      say(fmt::format("trireme launch deputy: job {} has ended as somebody wished", job));
      return 0;
    }
    const CommandResult done = run_command({"scontrol", "requeue", number}, kCommandLimit);
    say(fmt::format("trireme launch deputy: job {}: {}", job,
                    done.good() ? "requeued" : done.complaint("scontrol requeue")));
    if (done.good()) {
      return 0;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return static_cast<int>(ExitCode::io);
}

}  // namespace

JobState parse_job_state(std::string_view scontrol_output) {
  constexpr std::string_view kKey = "JobState=";
  const std::size_t at = scontrol_output.find(kKey);
  if (at == std::string_view::npos) {
    return JobState::unknown;
  }
  const std::string_view rest = scontrol_output.substr(at + kKey.size());
  const std::string_view state = rest.substr(0, rest.find_first_of(" \t\r\n+,"));
  if (state == "CANCELLED" || state == "COMPLETED" || state == "TIMEOUT" || state == "DEADLINE") {
    return JobState::cancelled;
  }
  if (state == "PENDING" || state == "REQUEUED" || state == "PREEMPTED" ||
      state == "SPECIAL_EXIT") {
    return JobState::ended;
  }
  return JobState::running;
}

bool should_requeue(JobState state) {
  return state == JobState::running || state == JobState::unknown;
}

int run_deputy(const DeputyPlan& plan) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_IGN);
  }
  constexpr double kConnectSeconds = 5;
  auto supervisor = call(plan.addresses, plan.port, plan.secret,
                         {.role = "deputy", .node = plan.node, .pid = ::getpid()}, kConnectSeconds);
  if (!supervisor) {
    return static_cast<int>(ExitCode::io);
  }
  return watch(*supervisor, plan.node) ? 0 : requeue(plan.job);
}

}  // namespace trireme
