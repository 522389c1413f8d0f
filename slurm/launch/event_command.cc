#include "slurm/launch/event_command.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "slurm/process/child.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
using EventClock = std::chrono::steady_clock;

constexpr std::size_t kMostInput = 4096;  // what Child can pass
constexpr std::size_t kMostWaitingEvents = 1000;
constexpr double kLookSeconds = 0.05;
constexpr double kKilledSeconds = 1;  // for a killed command to end

std::string end_event(int code) {
  return code == static_cast<int>(ExitCode::ok)        ? "finished"
         : code == static_cast<int>(ExitCode::requeue) ? "stopped"
                                                       : "gave_up";
}

std::string name_for_sites(const Note& note) {
  static const std::map<std::string, std::string> kSame = {
      {"node_lost", "node_lost"}, {"excluded", "node_excluded"}, {"stop_asked", "stop_requested"}};
  const nlohmann::json& fields = note.fields;
  if (note.event == "launch") {
    return fields.value("attempt", 1) > 1 ? "relaunch" : "started";
  }
  if (note.event == "attempt_end") {
    const std::string cause = fields.value("cause", "");
    return cause == "finished" || cause == "stopped" ? "" : "fault";
  }
  if (note.event == "over") {
    return end_event(fields.value("code", 0));
  }
  const auto found = kSame.find(note.event);
  return found == kSame.end() ? "" : found->second;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::optional<Json> site_event(const Note& note) {
  const std::string name = name_for_sites(note);
  if (name.empty()) {
    return std::nullopt;
  }
  Json event = {{"event", name}};
  for (const char* const key :
       {"attempt", "ranks", "node", "cause", "code", "durable_step", "signal"}) {
    if (note.fields.contains(key)) {
      event[key] = note.fields.at(key);
    }
  }
  const std::string what = note.fields.value("what", note.fields.value("why", ""));
  event["text"] = what.empty() ? note.text : what;
  return event;
}

std::string event_line(const Json& event, const EventCommandPlan& plan, double time) {
  Json line = {{"schema", 1},
               {"event", event.at("event")},
               {"time", time},
               {"launch", plan.launch},
               {"run", plan.run},
               {"host", plan.host},
               {"slurm_job", plan.slurm_job}};
  line.update(event);
  for (const char* const key : {"text", "run"}) {
    const std::size_t size = dumped(line).size() + 1;
    if (size > kMostInput) {
      const auto text = line[key].get<std::string>();
      // JSON writes at most six bytes for one, as in "\u001b".
      line[key] = text.substr(0, text.size() - std::min(text.size(), size - kMostInput + 6));
    }
  }
  return dumped(line) + "\n";
}

EventCommand::EventCommand(EventCommandPlan plan) : plan_(std::move(plan)) {
  if (plan_.command.empty()) {
    return;
  }
  sigset_t all, before;  // signals are for the supervisor's thread
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EventCommand::~EventCommand() { stop(0); }

void EventCommand::put(const Note& note) {
  const auto event = thread_.joinable() ? site_event(note) : std::nullopt;
  if (!event) {
    return;
  }
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  if (!is_over_ && lines_.size() < kMostWaitingEvents) {
    lines_.push_back(event_line(*event, plan_, now.count()));
    changed_.notify_all();
  }
}

std::vector<std::string> EventCommand::take_failures() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failures_, {});
}

void EventCommand::finish(double seconds) { stop(seconds); }

void EventCommand::stop(double seconds) {
  if (!thread_.joinable()) {
    return;
  }
  {
    std::unique_lock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_killing_; });
    is_killing_ = true;
  }
  thread_.join();
}

void EventCommand::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !lines_.empty(); });
    if (is_killing_ && !lines_.empty()) {
      failures_.push_back(fmt::format("the launch ended before the command had run for {}",
                                      counted(std::ssize(lines_), "event")));
    }
    if (lines_.empty() || is_killing_) {
      is_killing_ = true;  // wakes finish()
      changed_.notify_all();
      return;
    }
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    const std::string failure = run_one(line);
    lock.lock();
    if (!failure.empty() && failures_.size() < kMostWaitingEvents) {
      failures_.push_back(failure);
    }
  }
}

// Returns what went wrong, or "".
std::string EventCommand::run_one(const std::string& line) {
  const auto is_killing = [this] {
    const std::lock_guard lock(mutex_);
    return is_killing_;
  };
  try {
    Child child({.argv = {"/bin/sh", "-c", plan_.command}, .input = line});
    const auto end = EventClock::now() + std::chrono::duration<double>(plan_.deadline);
    std::optional<int> code;
    while (!(code = child.wait(kLookSeconds)) && EventClock::now() < end && !is_killing()) {
    }
    if (code) {
      return *code == 0 ? "" : fmt::format("the command ended with code {}", *code);
    }
    child.signal_group(SIGKILL);
    if (!child.wait(kKilledSeconds)) {
      child.leave();  // it hangs in the kernel
    }
    return EventClock::now() < end ? "the command was killed because the launch ended"
                                   : fmt::format(
                                         "the command was killed after {:g} s (launch."
                                         "event_deadline)",
                                         plan_.deadline);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace trireme
