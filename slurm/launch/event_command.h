// EventCommand runs a site's command for events of a launch (launch.on_event), with the event as
// JSON on its standard input: to send a mail or a message, or to open a ticket. The commands run
// one after the other on a thread of their own, each with a deadline, so none of them delays the
// launch. Owned by the supervisor; all calls come from its thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "slurm/policy/course.h"

namespace trireme {

struct EventCommandPlan {
  std::string command = {};  // for /bin/sh -c; empty means that nothing ever runs
  double deadline = 30;      // seconds until a command is killed
  // What each event says about the launch:
  std::string launch = {};
  std::string run = {};
  std::string host = {};
  std::string slurm_job = {};
};

// Returns the event for sites that a note of the journal stands for, as {"event", ...} with the
// fields of docs/launch.md, or nothing if the note is of no interest to them.
std::optional<nlohmann::ordered_json> site_event(const Note& note);
// Returns an event as one line of at most 4 KiB; its text is shortened if needed.
std::string event_line(const nlohmann::ordered_json& event, const EventCommandPlan& plan,
                       double time);

class EventCommand {
 public:
  explicit EventCommand(EventCommandPlan plan);
  // Kills a command that still runs.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  // Runs the command for a note, if it stands for an event. Events beyond the first 1000 that wait
  // are dropped.
  void put(const Note& note);
  // Returns what went wrong since the last call: a code other than 0, or a missed deadline.
  std::vector<std::string> take_failures();
  // Waits at most `seconds` for the commands of all events. Later events are dropped.
  void finish(double seconds);

 private:
  void work();
  std::string run_one(const std::string& line);
  void stop(double seconds);

  EventCommandPlan plan_;
  std::mutex mutex_;  // guards the members below, except thread_
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::vector<std::string> failures_;
  bool is_over_ = false;     // no further events come
  bool is_killing_ = false;  // running commands are to be killed
  std::thread thread_;
};

}  // namespace trireme
