#include "slurm/launch/deputy.h"

#include <cctype>
#include <charconv>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include <unistd.h>

#include "slurm/process/silence.h"
#include "slurm/wire/handshake.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/say.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr double kSilenceSeconds = 10;
constexpr std::chrono::seconds kCommandLimit{10};  // an overloaded controller answers late or never
constexpr int kAttempts = 30;
constexpr std::chrono::seconds kBetween{2};

// Returns whether the supervisor said goodbye before its connection ended.
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
  say(fmt::format("trireme launch deputy on {}: lost the supervisor", node));
  return false;
}

int requeue(const std::string& job) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const CommandResult shown = run_command({"scontrol", "show", "job", job}, kCommandLimit);
    const JobRecord record = parse_job(shown.output);
    if (!should_requeue(record.state)) {
      say(fmt::format(
          "trireme launch deputy: job {} has already ended or been requeued: nothing to do", job));
      return 0;
    }
    if (record.has_failed && record.restarts >= kMostRestartsOfFailures) {
      say(fmt::format("trireme launch deputy: job {} has failed after {}: not requeued", job,
                      counted(record.restarts, "restart")));
      return 0;
    }
    // A job that must not be requeued is cancelled; otherwise it would hold its nodes, without a
    // script, until its time limit.
    const std::vector<std::string> command =
        record.may_be_requeued ? std::vector<std::string>{"scontrol", "requeue", job}
                               : std::vector<std::string>{"scancel", job};
    const CommandResult done = run_command(command, kCommandLimit);
    say(fmt::format("trireme launch deputy: job {}: {}", job,
                    !done.good()             ? done.complaint(command.front())
                    : record.may_be_requeued ? "requeued"
                                             : "cancelled, because it must not be requeued"));
    if (done.good()) {
      return 0;
    }
    std::this_thread::sleep_for(kBetween);
  }
  return static_cast<int>(ExitCode::io);
}

// Returns the value in text of the form "... key=value ...". The key includes its '='.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0) {
      const std::string_view rest = text.substr(at + key.size());
      return rest.substr(0, rest.find_first_of(" \t\r\n+,"));
    }
  }
  return std::nullopt;
}

}  // namespace

JobRecord parse_job(std::string_view scontrol_output) {
  JobRecord record;
  record.state = parse_job_state(scontrol_output);
  record.may_be_requeued = value_of(scontrol_output, "Requeue=") != "0";
  const std::string_view state = value_of(scontrol_output, "JobState=").value_or("");
  record.has_failed = state == "FAILED" || state == "OUT_OF_MEMORY" || state == "COMPLETING";
  const std::string_view restarts = value_of(scontrol_output, "Restarts=").value_or("");
  std::from_chars(restarts.data(), restarts.data() + restarts.size(), record.restarts);
  return record;
}

JobState parse_job_state(std::string_view scontrol_output) {
  const auto found = value_of(scontrol_output, "JobState=");
  if (!found) {
    return JobState::unknown;
  }
  const std::string_view state = *found;
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
  Refusal refusal;
  auto supervisor =
      call(plan.addresses, plan.port, plan.secret,
           {.role = "deputy", .node = plan.node, .pid = ::getpid()}, kConnectSeconds, &refusal);
  if (!supervisor) {
    if (!refusal.why.empty()) {
      say(fmt::format("trireme launch deputy on {}: {}", plan.node, refusal.why));
    }
    return static_cast<int>(refusal.code);
  }
  return watch(*supervisor, plan.node) ? 0 : requeue(plan.job);
}

}  // namespace trireme
