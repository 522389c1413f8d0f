#include "slurm/launch/supervisor.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "slurm/launch/fleet.h"
#include "slurm/launch/run_files.h"
#include "slurm/policy/site_list.h"
#include "slurm/wire/secret.h"
#include "src/base/error.h"
#include "src/base/log.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMilliseconds = 100;
constexpr double kLongestStallSeconds = 900;
constexpr double kStopPatience = 10;  // who asks for a stop does not wait longer for a disk
constexpr double kPingSeconds = 1;
constexpr double kFarewellSeconds = 12;  // agents take up to 10 to end ranks
constexpr std::array kSignals = {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

// Signals come as something to read; children are started without the blocks.
UniqueHandle<FileDescriptorTraits> open_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) {
    sigaddset(&set, number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // who is started with it ignored would learn of no child's end
  return UniqueHandle<FileDescriptorTraits>(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// What mpirun leaves where it was killed: its session's folder.
void remove_session(pid_t launcher) {
  const char* base = std::getenv("OMPI_MCA_orte_tmpdir_base");  // NOLINT(concurrency-mt-unsafe)
  const char* temporary = std::getenv("TMPDIR");                // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path top = base != nullptr        ? base
                                    : temporary != nullptr ? temporary
                                                           : "/tmp";
  // ompi.<the node, as mpirun calls it>.<user>/pid.<its number>
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(top, gone)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("ompi.") && name.ends_with(fmt::format(".{}", ::getuid()))) {
      std::filesystem::remove_all(entry.path() / fmt::format("pid.{}", launcher), gone);
    }
  }
}

// The run's own failure rate, for intervals between checkpoints that depend on it.
Environment failure_rate(const std::filesystem::path& journal) {
  constexpr std::int64_t kMostBytes = 1 << 30;
  constexpr std::int64_t kFewestFailures = 2;
  try {
    std::int64_t bad_lines = 0;
    const Account account = account_of(parse_journal(read_file(journal, kMostBytes), bad_lines));
    if (account.failures >= kFewestFailures) {
      return {{"TRIREME_MTBF_HOURS", fmt::format("{}", account.mean_hours_between_failures())}};
    }
  } catch (const Error&) {
    // No journal, no rate.
  }
  return {};
}

// On a thread that nobody waits for: a file system that hangs may keep it longer than us.
template <class Work>
std::future<std::invoke_result_t<Work>> start_aside(Work work) {
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

LaunchSetting completed(const LaunchPlan& plan) {
  LaunchSetting setting = plan.setting;
  setting.launch = fresh_secret().substr(0, 12);
  setting.extra = failure_rate(RunFiles(plan.run_folder, plan.checkpoint_folder).journal());
  return setting;
}

class Supervisor {
 public:
  explicit Supervisor(const LaunchPlan& plan)
      : plan_(plan),
        setting_(completed(plan)),
        files_(std::make_shared<RunFiles>(plan.run_folder, plan.checkpoint_folder)),
        journal_(files_->journal(), setting_.launch),
        signals_(open_signals()),
        fleet_(setting_, fresh_secret(), plan.health),
        course_(plan.course, plan.nodes,
                plan.site_list.empty() ? std::map<std::string, std::string>{}
                                       : read_site_list(plan.site_list)) {}

  int run();

 private:
  // What reads or writes files of the run or the site: on a file system that hangs it may take
  // minutes. Agents and deputy hear of us meanwhile, for they would take us for dead; as we are, if
  // it takes longer than anybody waits for a disk. A stop that is asked for goes on without it,
  // `otherwise` is the result then. `work` owns what it uses: it may outlive us.
  template <class Work>
  std::invoke_result_t<Work> beside_pings(Work work, std::invoke_result_t<Work> otherwise);
  bool is_leaving() const { return leaving_since_ >= 0; }

  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void feed(const Event& event);
  void wait() const;
  void ping();
  void hear_signals();
  void pass_signals_on();
  void look_at_launcher();
  void look_at_deputy();
  void perform(const Action& action);
  void launch(const LaunchRanks& order);
  void tell(const Note& note);

  LaunchPlan plan_;
  LaunchSetting setting_;
  Clock::time_point start_ = Clock::now();
  std::shared_ptr<RunFiles> files_;
  Journal journal_;
  UniqueHandle<FileDescriptorTraits> signals_;  // until it is there a signal simply ends us
  Fleet fleet_;
  Course course_;
  std::optional<Child> launcher_;
  std::optional<int> code_;  // set: over
  double deputy_asked_ = -1e9;
  double pinged_ = 0;
  std::vector<int> stops_;     // signals that the course has not heard of yet
  double leaving_since_ = -1;  // a stop was asked for
  bool files_hang_ = false;    // a work on them was given up
};

template <class Work>
std::invoke_result_t<Work> Supervisor::beside_pings(Work work,
                                                    std::invoke_result_t<Work> otherwise) {
  if (files_hang_) {
    return otherwise;
  }
  auto result = start_aside(std::move(work));
  const double began = now();
  while (result.wait_for(std::chrono::milliseconds(kTickMilliseconds)) !=
         std::future_status::ready) {
    hear_signals();
    if (is_leaving() && now() - std::max(began, leaving_since_) > kStopPatience) {
      files_hang_ = true;
      tell({"files_hang",
            {{"seconds", now() - began}},
            fmt::format("{} has not answered for {:.0f} s: leaving without it",
                        plan_.run_folder.string(), now() - began)});
      return otherwise;
    }
    if (now() - began < kLongestStallSeconds) {
      ping();
    }
  }
  return result.get();
}

int Supervisor::run() {
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
    feed(Tick{});
    ping();
  }
  launcher_.reset();
  fleet_.dismiss(kFarewellSeconds);
  journal_.write("end", {{"code", *code_}}, now());
  return *code_;
}

void Supervisor::wait() const {
  std::vector<pollfd> waiting = {{signals_.get(), POLLIN, 0}};
  fleet_.add_to(waiting);
  ::poll(waiting.data(), waiting.size(), kTickMilliseconds);
}

void Supervisor::ping() {
  if (now() - pinged_ > kPingSeconds) {
    pinged_ = now();
    fleet_.ping_all();
  }
}

void Supervisor::feed(const Event& event) {
  for (const Action& action : course_.on(event, now())) {
    perform(action);
  }
}

void Supervisor::hear_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (static_cast<int>(info.ssi_signo) != SIGCHLD) {
      stops_.push_back(static_cast<int>(info.ssi_signo));
      leaving_since_ = is_leaving() ? leaving_since_ : now();
    }
  }
}

void Supervisor::pass_signals_on() {
  hear_signals();
  for (const int signal : std::exchange(stops_, {})) {
    feed(StopAsked{signal});
  }
}

void Supervisor::look_at_launcher() {
  if (!launcher_ || !launcher_->poll()) {
    return;
  }
  const int code = *launcher_->poll();
  if (code > 128) {
    remove_session(launcher_->pid());
  }
  launcher_.reset();
  feed(beside_pings(
      [code, files = files_] {
        return LauncherEnded{code, files->reason(), files->done(code), files->durable_step()};
      },
      LauncherEnded{code, {}, false, {}}));
}

// On another node than ours, tried on one after the other.
void Supervisor::look_at_deputy() {
  constexpr double kTrySeconds = 15;
  if (plan_.slurm_job == 0 || fleet_.has_deputy() || now() - deputy_asked_ < kTrySeconds) {
    return;
  }
  std::vector<std::string> nodes = course_.ready_nodes();
  std::erase(nodes, plan_.batch_node);
  if (!nodes.empty()) {
    deputy_asked_ = now();
    fleet_.want_deputy(nodes.back(), plan_.slurm_job);
  }
}

void Supervisor::perform(const Action& action) {
  std::visit(
      Overloaded{[&](const StartAgent& a) { fleet_.start_agent(a.node, a.check_health); },
                 [&](const DropAgent& a) { fleet_.drop(a.node); },
                 [&](const ClearNode& a) {
                   fleet_.order(a.node, {.kind = Order::Kind::clear, .generation = a.generation});
                 },
                 [&](const LaunchRanks& a) { launch(a); },
                 [&](const SetPartner& a) { fleet_.set_partner(a.node, a.partner); },
                 [&](const SignalRanks& a) {
                   if (launcher_) {
                     launcher_->signal(a.signal);
                   }
                 },
                 [&](const KillRanks&) {
                   if (launcher_) {
                     launcher_->signal_group(SIGKILL);
                   }
                 },
                 [&](const BlameNode& a) {
                   if (!plan_.site_list.empty() &&
                       !beside_pings([list = plan_.site_list,
                                      a] { return append_to_site_list(list, a.node, a.why); },
                                     false)) {
                     tell({"site_list_unwritable",
                           {{"node", a.node}},
                           "cannot write to " + plan_.site_list.string()});
                   }
                 },
                 [&](const Note& a) { tell(a); },
                 [&](const Finish& a) {
                   beside_pings(
                       [files = files_, a] {
                         files->end(a.code, a.why, host_name());
                         return true;
                       },
                       false);
                   code_ = a.code;
                 }},
      action);
}

void Supervisor::launch(const LaunchRanks& order) {
  beside_pings(
      [files = files_] {
        files->begin_attempt();
        return true;
      },
      false);
  if (is_leaving()) {
    pass_signals_on();
    feed(LauncherEnded{});
    return;
  }
  LaunchSetting setting = setting_;
  // A start that hangs, as those before did not, should not cost ten minutes. The user's word wins.
  const char* const asked = std::getenv("TRIREME_START_DEADLINE");  // NOLINT(concurrency-mt-unsafe)
  if (order.start_deadline > 0 && asked == nullptr) {
    setting.extra.emplace_back("TRIREME_START_DEADLINE",
                               fmt::format("{:.0f}", order.start_deadline));
  }
  Command command = ranks_command(setting, order.generation, order.nodes);
  try {
    launcher_.emplace(ChildPlan{.argv = command.argv,
                                .environment = command.environment,
                                .input = {},
                                .own_group = true,
                                .dies_with_us = true});
  } catch (const IoError& error) {
    tell({"launcher_missing", {{"why", error.what()}}, error.what()});
    code_ = static_cast<int>(ExitCode::usage);
  }
}

void Supervisor::tell(const Note& note) {
  journal_.write(note.event, note.fields, now());
  if (!note.text.empty()) {
    journal_.say("trireme launch: " + note.text);
  }
}

}  // namespace

int supervise(const LaunchPlan& plan) {
  // First of all: what follows writes into the run's folder.
  RunFiles run(plan.run_folder, plan.checkpoint_folder);
  run.take();
  return Supervisor(plan).run();
}

}  // namespace trireme
