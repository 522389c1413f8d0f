#include "slurm/agent/agent.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "slurm/agent/copy_messages.h"
#include "slurm/agent/copy_receiver.h"
#include "slurm/agent/copy_sender.h"
#include "slurm/agent/node_folder.h"
#include "slurm/agent/rank_watch.h"
#include "slurm/process/proc.h"
#include "slurm/process/silence.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/say.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 100;
// Poll interval while the next attempt waits for old ranks to end.
constexpr int kClearMilliseconds = 20;
constexpr double kReportSeconds = 1;
constexpr std::int64_t kEveryAttempt = INT64_MAX;

double seconds_since(Clock::time_point when) {
  return std::chrono::duration<double>(Clock::now() - when).count();
}

// When a job is cancelled, Slurm sends these signals to every step. The agent ignores them and ends
// only when the supervisor says so, because checkpoints in memory have to outlive the ranks.
void ignore_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    ::signal(number, SIG_IGN);
  }
}

// Returns why a health check has failed, in one line. The check may say so on stderr, as most
// programs do, or in its first line on stdout, as `trireme health` does.
std::string trouble_of(const CommandResult& result) {
  constexpr std::size_t kMostBytes = 1000;
  const std::string said = result.output.substr(0, result.output.find('\n'));
  const std::string text = result.complaint("health check");
  return (said.empty() ? text : fmt::format("{}; it printed: {}", text, said))
      .substr(0, kMostBytes);
}

// Returns whether all nodes of the launch are this machine, as with --local.
bool is_local(const AgentPlan& plan) {
  return plan.addresses == std::vector<std::string>{"127.0.0.1"};
}

class Agent {
 public:
  explicit Agent(const AgentPlan& plan)
      : plan_(plan),
        folder_(plan.launch, plan.node),
        ranks_(folder_.path(), plan.launch, plan.node),
        receiver_(std::in_place, folder_.path(), plan.secret,
                  is_local(plan) ? "127.0.0.1" : "0.0.0.0", plan.ports),
        sender_(folder_.path(), plan.node, plan.secret) {}

  int run() {
    check_health();
    ExitCode code = ExitCode::ok;
    // Keep the connection open until the clean-up is done: the supervisor kills an agent whose
    // connection is closed.
    std::optional<Connection> connection;
    try {
      connection = connect();
      if (connection) {
        serve(*connection);
      }
      code = connection ? ExitCode::ok : refusal_.code;
    } catch (const Error& error) {
      // An agent that cannot understand its supervisor cleans up as if the supervisor were gone.
      say(
          fmt::format("trireme launch agent on {}: cannot understand the supervisor: {}; ending "
                      "the ranks of this node",
                      plan_.node, error.what()));
      code = error.exit_code();
    }
    end_ranks();
    receiver_.reset();  // joins its thread, so that nothing appears in the folder any more
    folder_.remove();
    return static_cast<int>(code);
  }

 private:
  void check_health() {
    if (!plan_.health.empty()) {
      const CommandResult result = run_command({"/bin/sh", "-c", plan_.health},
                                               std::chrono::duration<double>(plan_.health_seconds));
      report_.trouble = result.good() ? "" : trouble_of(result);
      report_.healthy = result.good();
    } else {
      report_.healthy = true;
    }
    report_.settled = true;
  }

  std::optional<Connection> connect() {
    constexpr int kMostRefusals = 3;
    const Clock::time_point start = Clock::now();
    for (int refusals = 0; seconds_since(start) < plan_.connect_seconds;) {
      refusal_ = {};
      auto connection = call(plan_.addresses, plan_.port, plan_.secret,
                             {.role = "agent",
                              .node = plan_.node,
                              .pid = ::getpid(),
                              .port = receiver_->port(),
                              .addresses = own_addresses()},
                             2, &refusal_);
      if (connection) {
        return connection;
      }
      refusals += refusal_.code == ExitCode::refused ? 1 : 0;
      if (refusals == kMostRefusals) {
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    if (!refusal_.why.empty()) {
      say(fmt::format("trireme launch agent on {}: {}", plan_.node, refusal_.why));
      return std::nullopt;
    }
    say(fmt::format(
        "trireme launch agent on {}: the supervisor does not answer on port {}: allow the nodes to "
        "connect to its host on this port, or choose other ports with --ports",
        plan_.node, plan_.port));
    return std::nullopt;
  }

  void serve(Connection& supervisor) {
    Silence silence;
    Clock::time_point reported{};
    while (!over_ && !supervisor.closed() && silence.seconds() < plan_.silence_seconds) {
      pollfd waiting{supervisor.fd(),
                     static_cast<short>(POLLIN | (supervisor.wants_to_write() ? POLLOUT : 0)), 0};
      ::poll(&waiting, 1, report_.cleared < wanted_clear_ ? kClearMilliseconds : kLookMilliseconds);
      for (const std::string& text : supervisor.receive()) {
        silence.heard();
        obey(parse_order(text));
      }
      supervisor.flush();
      if (look() || seconds_since(reported) > kReportSeconds) {
        supervisor.send(to_json(report_));
        reported = Clock::now();
      }
    }
  }

  void obey(const Order& order) {
    switch (order.kind) {
      case Order::Kind::ping:
        break;
      case Order::Kind::clear:
        wanted_clear_ = std::max(wanted_clear_, order.attempt);
        break;
      case Order::Kind::partner:
        sender_.set_partner({order.node, order.port, order.addresses});
        break;
      case Order::Kind::bye:
        over_ = true;
        launch_over_ = order.attempt > 0;
        break;
    }
  }

  // Returns whether anything has changed that the supervisor should learn at once.
  bool look() {
    const AgentReport before = report_;
    if (report_.cleared < wanted_clear_ && clear(wanted_clear_)) {
      report_.cleared = wanted_clear_;
    }
    report_.ranks = ranks_.look();
    ranks_.ask_late(report_.ranks);
    report_.oom_kills = out_of_memory_kills();
    report_.memory_step = newest_memory_step();
    return report_.cleared != before.cleared || is_news(before.ranks, report_.ranks);
  }

  SavedStep newest_memory_step() const {
    SavedStep newest;
    std::error_code gone;
    const auto own = folder_.path() / "memory" / "own";
    for (const auto& entry : std::filesystem::directory_iterator(own, gone)) {
      const auto [generation, step] = age_of(entry.path().filename().string());
      newest = std::max(newest, SavedStep{generation, step});
    }
    return newest;
  }

  bool clear(std::int64_t attempt) {
    const bool daemons = ranks_.clear_marked(attempt);
    return ranks_.clear(attempt) && daemons;
  }

  void end_ranks() {
    constexpr double kPatience = 10;  // seconds; a process blocked in the kernel ends late
    const Clock::time_point start = Clock::now();
    // If the launch goes on without this node, the agent ends its own ranks only. Otherwise it also
    // ends the launcher processes on this machine.
    const auto none_left = [this] {
      return launch_over_ ? clear(kEveryAttempt) : ranks_.clear(kEveryAttempt);
    };
    while (!none_left() && seconds_since(start) < kPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  AgentPlan plan_;
  NodeFolder folder_;
  RankWatch ranks_;
  AgentReport report_;
  Refusal refusal_;  // of the last attempt to connect
  std::int64_t wanted_clear_ = 0;
  bool over_ = false;
  bool launch_over_ = true;  // assumed unless the supervisor's `bye` says otherwise
  std::optional<CopyReceiver> receiver_;
  CopySender sender_;
};

}  // namespace

int run_agent(const AgentPlan& plan) {
  ignore_signals();
  Agent agent(plan);
  return agent.run();
}

}  // namespace trireme
