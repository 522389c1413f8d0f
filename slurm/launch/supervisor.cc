#include "slurm/launch/supervisor.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "slurm/launch/event_command.h"
#include "slurm/launch/fleet.h"
#include "slurm/launch/launcher_process.h"
#include "slurm/launch/note_line.h"
#include "slurm/launch/run_files.h"
#include "slurm/launch/stop_signals.h"
#include "slurm/policy/site_list.h"
#include "slurm/wire/secret.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/overloaded.h"
#include "src/base/terminal.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMilliseconds = 100;
constexpr double kLongestStallSeconds = 900;
constexpr double kStopPatience = 10;  // longest wait for a disk after a stop was requested
constexpr double kPingSeconds = 1;
constexpr double kFarewellSeconds = 12;  // agents take up to 10 s to end ranks
constexpr int kBlameSeconds = 2;
constexpr double kLastEventsSeconds = 10;  // for the commands of the last events

// Returns the run's mean time between failures as a variable, for checkpoint intervals.
Environment failure_rate(const std::filesystem::path& journal) {
  constexpr std::int64_t kMostBytes = 1 << 30;
  constexpr std::int64_t kFewestFailures = 2;
  try {
    DamagedLines damaged;
    const Account account = account_of(parse_journal(read_file(journal, kMostBytes), damaged));
    if (account.failures >= kFewestFailures) {
      return {{"TRIREME_MTBF_HOURS", fmt::format("{}", account.mean_hours_between_failures())}};
    }
  } catch (const Error&) {
    // Without a journal, it is unknown.
  }
  return {};
}

// Runs `work` on a detached thread, which may outlive the caller on a hanging file system.
template <class Work>
std::future<std::invoke_result_t<Work>> start_aside(Work work) {
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

LaunchSetting numbered(LaunchSetting setting) {
  setting.launch = fresh_secret().substr(0, 12);
  return setting;
}

class Supervisor {
 public:
  explicit Supervisor(const LaunchPlan& plan)
      : plan_(plan),
        setting_(numbered(plan.setting)),
        files_(std::make_shared<RunFiles>(plan.run_folder, plan.checkpoint_folder)),
        journal_(files_->journal(), setting_.launch),
        events_({plan.on_event, plan.event_deadline, setting_.launch,
                 std::filesystem::absolute(plan.run_folder).lexically_normal().string(),
                 host_name(), plan.slurm_job}),
        fleet_(setting_, fresh_secret(), plan.health) {}

  int run();

 private:
  // An entry that is being written to the site list.
  struct Blame {
    std::string node;
    std::future<bool> is_written;
  };

  // Runs `work`, which accesses files of the run or the site and may block for minutes on a hanging
  // file system, and keeps pinging agents and the deputy meanwhile, so that they do not take the
  // supervisor for dead. Pings end after kLongestStallSeconds. A request to stop ends the wait
  // after kStopPatience with the result `otherwise`; `work` therefore owns what it uses.
  template <class Work>
  std::invoke_result_t<Work> beside_pings(Work work, std::invoke_result_t<Work> otherwise);

  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool prepare();
  void feed(const Event& event);
  void wait() const;
  void ping();
  void pass_signals_on();
  void look_at_launcher();
  void look_at_deputy();
  void look_at_blames();
  void look_at_events();
  void perform(const Action& action);
  void launch(const LaunchRanks& order);
  void finish(const Finish& order);
  void report(const Note& note);

  LaunchPlan plan_;
  LaunchSetting setting_;
  Clock::time_point start_ = Clock::now();
  StopSignals signals_;
  std::shared_ptr<RunFiles> files_;
  Journal journal_;
  EventCommand events_;
  Fleet fleet_;
  std::optional<Course> course_;
  LauncherProcess launcher_;
  std::vector<Blame> blames_;
  std::optional<int> code_;  // set when the launch is over
  double deputy_asked_ = -1e9;
  double pinged_ = 0;
  bool files_hang_ = false;  // whether access to the files was given up
};

template <class Work>
std::invoke_result_t<Work> Supervisor::beside_pings(Work work,
                                                    std::invoke_result_t<Work> otherwise) {
  if (files_hang_) {
    return otherwise;
  }
  auto result = start_aside(std::move(work));
  const double began = now();
  double leaving_since = -1;
  while (result.wait_for(std::chrono::milliseconds(kTickMilliseconds)) !=
         std::future_status::ready) {
    signals_.hear();
    leaving_since = signals_.asked() && leaving_since < 0 ? now() : leaving_since;
    if (leaving_since >= 0 && now() - leaving_since > kStopPatience) {
      files_hang_ = true;
      report(
          {"files_hang",
           {{"seconds", now() - began}},
           fmt::format(
               "the file system of {} has not answered for {:.0f} s: ending without writing to it",
               plan_.run_folder.string(), now() - began)});
      return otherwise;
    }
    if (now() - began < kLongestStallSeconds) {
      ping();
    }
  }
  return result.get();
}

// Returns false if a stop was requested before the run's folder was available.
bool Supervisor::prepare() {
  // Take the lock first, since what follows writes to the run's folder.
  if (!beside_pings(
          [files = files_] {
            files->take();
            return true;
          },
          false)) {
    return false;
  }
  setting_.extra =
      beside_pings([journal = files_->journal()] { return failure_rate(journal); }, Environment{});
  std::map<std::string, std::string> excluded;
  if (!plan_.site_list.empty()) {
    excluded = beside_pings([list = plan_.site_list] { return read_site_list(list); }, excluded);
  }
  course_.emplace(plan_.course, plan_.nodes, excluded);
  return true;
}

int Supervisor::run() {
  if (!prepare()) {
    return static_cast<int>(ExitCode::requeue);
  }
  journal_.write("begin",
                 {{"pid", ::getpid()},
                  {"host", host_name()},
                  {"run", setting_.run},
                  {"slurm_job", plan_.slurm_job}},
                 now());
  feed(Started{beside_pings([files = files_] { return files->durable_step(); }, {})});
  while (!code_) {
    wait();
    for (FleetNews& news : fleet_.look()) {
      if (news.report) {
        feed(AgentHeard{news.node, std::move(*news.report)});
      } else {
        feed(AgentLost{news.node, news.why});
      }
    }
    pass_signals_on();
    look_at_launcher();
    look_at_deputy();
    look_at_blames();
    look_at_events();
    feed(Tick{});
    ping();
  }
  launcher_.end();
  fleet_.dismiss(kFarewellSeconds);
  const auto end = Clock::now() + std::chrono::seconds(kBlameSeconds);
  for (const Blame& blame : blames_) {
    blame.is_written.wait_until(end);
  }
  look_at_blames();
  events_.finish(kLastEventsSeconds);
  look_at_events();
  journal_.write("end", {{"code", *code_}}, now());
  return *code_;
}

void Supervisor::wait() const {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
  fleet_.add_to(waiting);
  ::poll(waiting.data(), waiting.size(), fleet_.patience(kTickMilliseconds));
}

void Supervisor::ping() {
  if (now() - pinged_ > kPingSeconds) {
    pinged_ = now();
    fleet_.ping_all();
  }
}

void Supervisor::feed(const Event& event) {
  for (const Action& action : course_->on(event, now())) {
    perform(action);
  }
}

void Supervisor::pass_signals_on() {
  signals_.hear();
  for (const int signal : signals_.take()) {
    feed(StopAsked{signal});
  }
}

void Supervisor::look_at_launcher() {
  const auto end = launcher_.ended();
  if (!end) {
    return;
  }
  const LauncherEnded seen = beside_pings(
      [code = end->code, files = files_] {
        return LauncherEnded{code, files->reason(), files->done(code), files->durable_step(),
                             files->logged_step()};
      },
      LauncherEnded{end->code});
  pass_signals_on();  // so that a stop counts when the end is judged
  feed(seen);
}

// Starts a deputy on a node other than the supervisor's, and retries if there is none.
void Supervisor::look_at_deputy() {
  constexpr double kTrySeconds = 15;
  if (plan_.slurm_job.empty() || fleet_.has_deputy() || now() - deputy_asked_ < kTrySeconds) {
    return;
  }
  std::vector<std::string> nodes = course_->ready_nodes();
  std::erase(nodes, plan_.batch_node);
  if (!nodes.empty()) {
    deputy_asked_ = now();
    fleet_.want_deputy(nodes.back(), plan_.slurm_job);
  }
}

// Reports entries of the site list that could not be written. They matter to later launches only.
void Supervisor::look_at_blames() {
  std::erase_if(blames_, [&](Blame& blame) {
    if (blame.is_written.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return false;
    }
    if (!blame.is_written.get()) {
      report({"site_list_unwritable",
              {{"node", blame.node}},
              fmt::format("cannot add {} to the site list: cannot write to {}", blame.node,
                          plan_.site_list.string())});
    }
    return true;
  });
}

void Supervisor::look_at_events() {
  for (const std::string& why : events_.take_failures()) {
    report({"event_command_failed", {{"why", why}}, "launch.on_event: " + why});
  }
}

void Supervisor::perform(const Action& action) {
  std::visit(Overloaded{[&](const StartAgent& a) { fleet_.start_agent(a.node, a.check_health); },
                        [&](const DropAgent& a) { fleet_.drop(a.node); },
                        [&](const ClearNode& a) {
                          fleet_.order(a.node, {.kind = Order::Kind::clear, .attempt = a.attempt});
                        },
                        [&](const LaunchRanks& a) { launch(a); },
                        [&](const SetPartner& a) { fleet_.set_partner(a.node, a.partner); },
                        [&](const SignalRanks& a) { launcher_.signal(a.signal); },
                        [&](const KillRanks&) { launcher_.kill(); },
                        [&](const LeaveLauncher&) { launcher_.leave(); },
                        [&](const BlameNode& a) {
                          if (!plan_.site_list.empty()) {
                            blames_.push_back({a.node, start_aside([list = plan_.site_list, a] {
                                                 return append_to_site_list(list, a.node, a.why);
                                               })});
                          }
                        },
                        [&](const Note& a) { report(a); }, [&](const Finish& a) { finish(a); }},
             action);
}

void Supervisor::launch(const LaunchRanks& order) {
  beside_pings(
      [files = files_] {
        files->begin_attempt();
        return true;
      },
      false);
  if (signals_.asked()) {
    pass_signals_on();
    feed(LauncherEnded{});
    return;
  }
  LaunchSetting setting = setting_;
  // Earlier starts show how long a start may take, so a hanging one should not cost ten minutes. A
  // value set by the user has precedence.
  const char* const asked = std::getenv("TRIREME_START_DEADLINE");
  if (order.start_deadline > 0 && asked == nullptr) {
    setting.extra.emplace_back("TRIREME_START_DEADLINE",
                               fmt::format("{:.0f}", order.start_deadline));
  }
  if (const int columns = terminal_columns(); columns > 0) {
    setting.extra.emplace_back(kTerminalColumns, fmt::format("{}", columns));
  }
  if (order.has_saved) {
    // A relaunch continues from what the launch has saved, whatever checkpoint.resume said.
    setting.run.emplace_back("checkpoint.resume=auto");
  }
  try {
    launcher_.start(ranks_command(setting, order.attempt, order.nodes));
  } catch (const NotFound& error) {
    report({"launcher_missing", {{"why", error.what()}}, error.what()});
    finish({static_cast<int>(ExitCode::usage), error.what()});
  } catch (const IoError& error) {
    report({"launcher_not_started", {{"why", error.what()}}, error.what()});
    feed(LauncherEnded{});
  }
}

void Supervisor::finish(const Finish& order) {
  beside_pings(
      [files = files_, order] {
        files->end(order, host_name());
        return true;
      },
      false);
  code_ = order.code;
}

void Supervisor::report(const Note& note) {
  journal_.write(note.event, note.fields, now());
  events_.put(note);
  if (!note.text.empty()) {
    journal_.say(note_line(note, setting_.launch, plan_.json_log));
  }
}

}  // namespace

int supervise(const LaunchPlan& plan) { return Supervisor(plan).run(); }

}  // namespace trireme
